/** The stream parts of an AI SDK provider → the answer. */
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { TokenCount } from '../domain/usage.ts'
import { growAnswer } from './answer.ts'
import { streamError, TRUNCATED, type Wording } from './failures.ts'
import type { FinishReason, ModelDelta, ModelFailure, ModelOutcome } from './port.ts'

export interface PartReader {
  /** `error` parts are not for this reader. */
  take(part: LanguageModelV4StreamPart): void
  /** Whether anything of the answer has come. */
  begun(): boolean
  /** What the parts amount to when no more come. */
  outcome(): ModelOutcome
  tokens(): TokenCount | undefined
}

export function createPartReader(onDelta: (delta: ModelDelta) => void, wording: Wording): PartReader {
  const answer = growAnswer(onDelta)
  let finish: LanguageModelV4FinishReason['unified'] | undefined
  let tokens: TokenCount | undefined

  function take(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case 'text-start':
        answer.begin('text', part.providerMetadata)
        return
      case 'text-delta':
        answer.text(part.delta)
        if (part.providerMetadata) answer.keep('text', part.providerMetadata)
        return
      case 'reasoning-start':
        answer.begin('reasoning', part.providerMetadata)
        return
      case 'reasoning-delta':
        answer.reasoning(part.delta)
        if (part.providerMetadata) answer.keep('reasoning', part.providerMetadata)
        return
      case 'text-end':
        if (part.providerMetadata) answer.keep('text', part.providerMetadata)
        return
      case 'reasoning-end':
        if (part.providerMetadata) answer.keep('reasoning', part.providerMetadata)
        return
      case 'tool-call': {
        const call = answer.call()
        call.id = part.toolCallId
        call.name = part.toolName
        call.argsText = part.input
        call.provider = part.providerMetadata
        return
      }
      case 'finish':
        finish = part.finishReason.unified
        tokens = readUsage(part.usage)
    }
  }

  function outcome(): ModelOutcome {
    const failure = failureIn(finish)
    if (failure) return { ok: false, failure, tokens }
    const message = { role: 'assistant', content: answer.content() } as const
    return { ok: true, message, finish: toFinish(finish, answer.hasCalls()), tokens }
  }

  function failureIn(reason: typeof finish): ModelFailure | undefined {
    if (reason === undefined || reason === 'interrupted') return TRUNCATED
    return reason === 'error' ? streamError({}, wording) : undefined
  }

  return { take, begun: () => answer.size() > 0, outcome, tokens: () => tokens }
}

function readUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): TokenCount | undefined {
  if (inputTokens.total === undefined && outputTokens.total === undefined) return undefined
  return {
    input: inputTokens.total ?? 0,
    output: outputTokens.total ?? 0,
    cachedInput: inputTokens.cacheRead ?? 0,
    reasoning: outputTokens.reasoning ?? 0,
  }
}

function toFinish(reason: LanguageModelV4FinishReason['unified'] | undefined, hasCalls: boolean): FinishReason {
  if (reason === 'length') return 'length'
  if (reason === 'content-filter') return 'content_filter'
  return hasCalls ? 'tool_calls' : 'stop'
}
