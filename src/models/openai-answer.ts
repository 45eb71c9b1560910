/**
 * `chat.completion.chunk` objects → the answer. Takes the dialects there are: reasoning under three names, content as a
 * list of parts, tool calls whole or in pieces, without index or id, usage in a chunk of its own or in any other.
 */
import { cacheWrite, type TokenCount } from '../domain/usage.ts'
import { type GrowingCall, growAnswer } from './answer.ts'
import { failed, malformed, streamError, TRUNCATED, toProviderError, type Wording } from './failures.ts'
import { countIn, isJsonObject, type JsonObject, objectIn, stringIn } from './json.ts'
import type { FinishReason, ModelDelta, ModelFailure, ModelOutcome } from './port.ts'

export interface ChunkReader {
  /** A failure ends the call; the reader is of no use then. */
  take(chunk: unknown): ModelFailure | undefined
  /** What the answer amounts to. `done`: the provider said that it is whole (`[DONE]`, or it was not a stream). */
  outcome(done: boolean): ModelOutcome
  tokens(): TokenCount | undefined
}

/** More than any model writes in one answer; a bound on a provider gone wild. */
const MAX_ANSWER_CHARS = 16 * 1024 * 1024

export function createChunkReader(onDelta: (delta: ModelDelta) => void, wording: Wording): ChunkReader {
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
    // Another id with a name is another call, whatever the index says: some servers number every call 0, or none.
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
    // Some put the usage beside the delta.
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
      message: { role: 'assistant', content },
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
 * Some providers leave reasoning out of `completion_tokens` and show it only in the total. Cache writes are reported by
 * gateways (OpenRouter, LiteLLM) to providers that bill them.
 */
function readUsage(usage: JsonObject): TokenCount | undefined {
  if (typeof usage.prompt_tokens !== 'number' && typeof usage.completion_tokens !== 'number') return undefined
  const input = countIn(usage, 'prompt_tokens')
  const details = objectIn(usage, 'prompt_tokens_details')
  return {
    input,
    output: Math.max(countIn(usage, 'completion_tokens'), countIn(usage, 'total_tokens') - input),
    cachedInput: countIn(details, 'cached_tokens') || countIn(usage, 'prompt_cache_hit_tokens'),
    ...cacheWrite(countIn(details, 'cache_write_tokens') || countIn(usage, 'cache_creation_input_tokens')),
    reasoning: countIn(objectIn(usage, 'completion_tokens_details'), 'reasoning_tokens'),
  }
}

/** Many servers say `stop` where tools are called; a word nobody knows is an ordinary end. */
function toFinish(finish: string | undefined, hasCalls: boolean): FinishReason {
  if (finish === 'length' || finish === 'max_tokens') return 'length'
  if (finish === 'content_filter') return 'content_filter'
  return hasCalls ? 'tool_calls' : 'stop'
}
