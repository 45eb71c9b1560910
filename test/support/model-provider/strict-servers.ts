/** Rules of hosted providers with the chat completions API that refuse what most servers accept. */
import type { ChatRequest } from './chat-completions.ts'
import type { Refusal } from './serve.ts'

export type StrictServer = 'mistral' | 'groq' | 'deepseek'

/** Fields that a server knows. It refuses all others. */
interface KnownFields {
  readonly request: readonly string[]
  readonly message: readonly string[]
}

const COMMON = ['model', 'messages', 'stream', 'max_tokens', 'tools', 'response_format']
const MESSAGE = ['role', 'content', 'tool_calls', 'tool_call_id', 'name']
const KNOWN: Readonly<Partial<Record<StrictServer, KnownFields>>> = {
  mistral: { request: [...COMMON, 'prompt_cache_key'], message: [...MESSAGE, 'prefix'] },
  groq: { request: [...COMMON, 'max_completion_tokens', 'stream_options'], message: MESSAGE },
}

export function strictRefusal(body: ChatRequest, server: StrictServer | undefined): Refusal | undefined {
  if (!server) return undefined
  const unknown = unknownField(body, KNOWN[server])
  if (unknown) return { status: 422, message: `property '${unknown}' is unsupported: Extra inputs are not permitted` }
  if (server === 'mistral') return mistralRefusal(body)
  if (!body.response_format) return undefined
  return { status: 400, message: 'This response_format type is unavailable now', code: 'invalid_request_error' }
}

function unknownField(body: ChatRequest, known: KnownFields | undefined): string | undefined {
  if (!known) return undefined
  const inMessages = body.messages.flatMap((message) => Object.keys(message))
  return (
    Object.keys(body).find((field) => !known.request.includes(field)) ??
    inMessages.find((field) => !known.message.includes(field))
  )
}

function mistralRefusal({ messages }: ChatRequest): Refusal | undefined {
  const ids = messages.flatMap(({ tool_calls = [], tool_call_id }) => [
    ...tool_calls.map(({ id }) => id),
    ...(tool_call_id === undefined ? [] : [tool_call_id]),
  ])
  const wrong = ids.find((id) => !/^[a-zA-Z0-9]{9}$/.test(id))
  if (wrong !== undefined) {
    return { status: 400, message: `Tool call id was ${wrong} but must be a-z, A-Z, 0-9, with a length of 9.` }
  }
  const adjacent = messages.some(({ role }, i) => role === 'user' && messages[i - 1]?.role === 'tool')
  return adjacent ? { status: 400, message: "Unexpected role 'user' after role 'tool'" } : undefined
}
