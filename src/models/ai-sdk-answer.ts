/** Stream parts of an AI SDK provider → the answer. */
import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4ToolResult,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { cacheWrite, type TokenCount } from '../domain/usage.ts'
import { growAnswer } from './answer.ts'
import { streamError, TRUNCATED, type Wording } from './failures.ts'
import type { FinishReason, ModelDelta, ModelFailure, ModelOutcome } from './port.ts'
import { showSearch, showSources } from './provider-search.ts'
import type { AiSdkProvider } from './providers/ai-sdk-provider.ts'

export interface PartReader {
  /** Adds a part. Must not be called with `error` parts. */
  take(part: LanguageModelV4StreamPart): void
  /** Whether any part of the answer has been received. */
  begun(): boolean
  /** Whether the provider interrupted the turn and wants to continue it. */
  paused(): boolean
  /** Outcome after the last part. */
  outcome(): ModelOutcome
  tokens(): TokenCount | undefined
}

/** Calls and results of the provider's own tools are marked with its name: only that provider takes them back. */
export function createPartReader(
  { name: by, search, pauseReason }: AiSdkProvider,
  onDelta: (delta: ModelDelta) => void,
  wording: Wording,
): PartReader {
  const answer = growAnswer(onDelta)
  const searches = new Map<string, { call: LanguageModelV4ToolCall; since: number }>()
  let finish: LanguageModelV4FinishReason['unified'] | undefined
  let tokens: TokenCount | undefined
  let paused = false

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
        if (part.providerExecuted) {
          takeOwnCall(part)
          return
        }
        const call = answer.call()
        call.id = part.toolCallId
        call.name = part.toolName
        call.argsText = part.input
        call.provider = part.providerMetadata
        return
      }
      case 'tool-result':
        takeOwnResult(part)
        return
      case 'finish': {
        finish = part.finishReason.unified
        paused = pauseReason !== undefined && part.finishReason.raw === pauseReason
        const sources = showSources(search, part.providerMetadata)
        if (sources) onDelta(sources)
        tokens = readUsage(part.usage)
      }
    }
  }

  function takeOwnCall(call: LanguageModelV4ToolCall): void {
    searches.set(call.toolCallId, { call, since: performance.now() })
    answer.providerTool({ type: 'provider_tool', by, part: call })
  }

  function takeOwnResult(result: LanguageModelV4ToolResult): void {
    if (result.preliminary) return
    answer.providerTool({ type: 'provider_tool', by, part: result })
    const started = searches.get(result.toolCallId)
    if (!started) return
    const shown = showSearch(search, started.call, result, Math.round(performance.now() - started.since))
    if (shown) onDelta(shown)
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

  return { take, begun: () => answer.size() > 0, paused: () => paused, outcome, tokens: () => tokens }
}

function readUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): TokenCount | undefined {
  if (inputTokens.total === undefined && outputTokens.total === undefined) return undefined
  return {
    input: inputTokens.total ?? 0,
    output: outputTokens.total ?? 0,
    cachedInput: inputTokens.cacheRead ?? 0,
    ...cacheWrite(inputTokens.cacheWrite),
    reasoning: outputTokens.reasoning ?? 0,
  }
}

function toFinish(reason: LanguageModelV4FinishReason['unified'] | undefined, hasCalls: boolean): FinishReason {
  if (reason === 'length') return 'length'
  if (reason === 'content-filter') return 'content_filter'
  return hasCalls ? 'tool_calls' : 'stop'
}
