/** Scripted model provider of most tests, with the chat completions API: see support/model-provider/serve.ts. */
import { type ChatOptions, type ChatRequest, chatCompletions } from './support/model-provider/chat-completions.ts'
import {
  type ModelProvider,
  type RecordedRequest as Recorded,
  type ServeOptions,
  serveDialect,
} from './support/model-provider/serve.ts'

export type { ChatMessage, ChatRequest } from './support/model-provider/chat-completions.ts'
export type { Fault, Reply } from './support/model-provider/script.ts'

export type RecordedRequest = Recorded<ChatRequest>
export type FakeProvider = ModelProvider<ChatRequest>

export function openFakeProvider(options: ChatOptions & ServeOptions = {}): Promise<FakeProvider> {
  return serveDialect(chatCompletions(options), options)
}

/** The rest of `answer` for a model that is asked to continue it; behind its end, the words that nothing is left. */
export function restOf(answer: string, { body: { messages } }: RecordedRequest): string {
  const at = messages.findLastIndex(
    ({ role, content }) => role === 'user' && !String(content).includes('Continue exactly'),
  )
  const texts = messages
    .slice(at + 1)
    .flatMap(({ role, content }) => (role === 'assistant' ? [String(content ?? '')] : []))
  return answer.slice(texts.join('').length) || '[end of answer]'
}
