/**
 * `chat.completion.chunk` objects → the answer. Accepts the dialects of many servers: reasoning under three names, content
 * as a list of parts, tool calls whole or in pieces, without index or id, usage in its own chunk or in any other.
 */
import { cacheWrite, type TokenCount } from '../domain/usage.ts'
import { type GrowingCall, growAnswer } from './answer.ts'
import { failed, malformed, streamError, TRUNCATED, toProviderError, type Wording } from './failures.ts'
import { countIn, isJsonObject, type JsonObject, objectIn, stringIn } from './json.ts'
import type { FinishReason, ModelDelta, ModelFailure, ModelOutcome } from './port.ts'
import type { ReasoningDetails } from './reasoning-details.ts'

export interface ChunkReader {
  /** A failure ends the call. The reader must not be used after it. */
  take(chunk: unknown): ModelFailure | undefined
  /** The outcome so far. `done`: the provider marked the answer as complete (`[DONE]`, or it was not a stream). */
  outcome(done: boolean): ModelOutcome
  tokens(): TokenCount | undefined
}

/** Limit against providers that never stop. No model writes as much in one answer. */
const MAX_ANSWER_CHARS = 16 * 1024 * 1024

/** `details`: where to keep `reasoning_details`. Undefined: they are read as text only. */
export function createChunkReader(
  onDelta: (delta: ModelDelta) => void,
  wording: Wording,
  details?: ReasoningDetails,
): ChunkReader {
  const answer = growAnswer(onDelta)
  const calls = new Map<number, GrowingCall>()
  let newestCall: GrowingCall | undefined
  let finish: string | undefined
  let tokens: TokenCount | undefined

  function takeCall(fragment: JsonObject): void {
    const id = stringIn(fragment, 'id')
    const called = objectIn(fragment, 'function')
    const name = stringIn(called, 'name')
    const index = typeof fragment.index === 'number' ? fragment.index : undefined
    let call = index === undefined ? newestCall : calls.get(index)
    // Another id with a name is another call, even with the same index: some servers give every call index 0, or none.
    if (!call || (id !== '' && name !== '' && call.id !== '' && call.id !== id)) call = answer.call()
    else if (index === undefined && id === '' && name !== '' && call.name !== '') call = answer.call()
    if (index !== undefined) calls.set(index, call)
    newestCall = call
    call.id ||= id
    call.name ||= name
    const args = called.arguments
    call.argsText += typeof args === 'string' ? args : isJsonObject(args) ? JSON.stringify(args) : ''
  }

  function takeDelta(delta: JsonObject): void {
    const reasoning = reasoningIn(delta)
    details?.take(delta.reasoning_details)
    if (reasoning !== '') answer.reasoning(reasoning)
    if (typeof delta.content === 'string') answer.text(delta.content)
    else if (Array.isArray(delta.content)) {
      for (const part of delta.content) {
        if (!isJsonObject(part)) continue
        if (part.type === 'thinking') answer.reasoning(joinTexts(part.thinking))
        else answer.text(stringIn(part, 'text'))
      }
    }
    answer.text(stringIn(delta, 'refusal'))
    if (Array.isArray(delta.tool_calls)) {
      for (const fragment of delta.tool_calls) if (isJsonObject(fragment)) takeCall(fragment)
    }
  }

  function take(chunk: unknown): ModelFailure | undefined {
    if (!isJsonObject(chunk)) return malformed('holds an event that is no JSON object')
    if (chunk.error) return streamError(toProviderError(chunk.error), wording)
    if (isJsonObject(chunk.usage)) tokens = readUsage(chunk.usage) ?? tokens
    const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined
    if (!isJsonObject(choice)) return undefined
    takeDelta(isJsonObject(choice.delta) ? choice.delta : objectIn(choice, 'message'))
    // Some servers put the usage next to the delta.
    if (isJsonObject(choice.usage)) tokens = readUsage(choice.usage) ?? tokens
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '') finish = choice.finish_reason
    if (answer.size() > MAX_ANSWER_CHARS) return malformed('has no end')
    return undefined
  }

  function outcome(done: boolean): ModelOutcome {
    if (finish === 'error') return { ok: false, failure: streamError({}, wording), tokens }
    if (finish === undefined && !done) return { ok: false, failure: TRUNCATED, tokens }
    const content = answer.content()
    if (content.some((part) => part.type === 'tool_call' && part.name === '')) {
      return { ok: false, failure: failed('malformed', 'The model called a tool without a name.'), tokens }
    }
    return {
      ok: true,
      message: { role: 'assistant', content: details?.attachTo(content) ?? content },
      finish: toFinish(finish, answer.hasCalls()),
      tokens,
    }
  }

  return { take, outcome, tokens: () => tokens }
}

/** `reasoning_content` (DeepSeek, vLLM, llama.cpp), `reasoning` (OpenRouter, Ollama), `reasoning_details` (OpenRouter). */
function reasoningIn(delta: JsonObject): string {
  return stringIn(delta, 'reasoning_content') || stringIn(delta, 'reasoning') || joinTexts(delta.reasoning_details)
}

function joinTexts(list: unknown): string {
  if (!Array.isArray(list)) return ''
  return list
    .filter(isJsonObject)
    .map((part) => stringIn(part, 'text') || stringIn(part, 'summary'))
    .join('')
}

/**
 * Some providers omit reasoning from `completion_tokens` and report it only in the total. Gateways (OpenRouter, LiteLLM)
 * report cache writes of providers that bill them.
 */
function readUsage(usage: JsonObject): TokenCount | undefined {
  if (typeof usage.prompt_tokens !== 'number' && typeof usage.completion_tokens !== 'number') return undefined
  const input = countIn(usage, 'prompt_tokens')
  const details = objectIn(usage, 'prompt_tokens_details')
  return {
    input,
    output: Math.max(countIn(usage, 'completion_tokens'), countIn(usage, 'total_tokens') - input),
    cachedInput:
      countIn(details, 'cached_tokens') ||
      countIn(usage, 'prompt_cache_hit_tokens') || // DeepSeek
      countIn(usage, 'num_cached_tokens'), // Mistral
    ...cacheWrite(countIn(details, 'cache_write_tokens') || countIn(usage, 'cache_creation_input_tokens')),
    reasoning: countIn(objectIn(usage, 'completion_tokens_details'), 'reasoning_tokens'),
  }
}

/** Many servers send `stop` with tool calls. An unknown reason counts as a normal end. */
function toFinish(finish: string | undefined, hasCalls: boolean): FinishReason {
  if (finish === 'length' || finish === 'max_tokens') return 'length'
  if (finish === 'content_filter') return 'content_filter'
  return hasCalls ? 'tool_calls' : 'stop'
}
