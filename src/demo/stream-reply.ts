/**
 * Streams a reply as a model would: in fragments, within the token budget, and ending soon after an abort. It does not
 * sleep, but yields to the event loop every few fragments, so that they are sent and an abort is noticed.
 */
import { setImmediate as turn } from 'node:timers/promises'
import type { AssistantPart } from '../domain/message.ts'
import { estimateTokens, type TokenCount } from '../domain/usage.ts'
import type { FinishReason, ModelDelta, ModelOutcome } from '../models/port.ts'

export interface Reply {
  readonly reasoning: string
  readonly move:
    | { readonly kind: 'text'; readonly text: string }
    | {
        readonly kind: 'call'
        readonly callId: string
        readonly name: string
        readonly args: Readonly<Record<string, unknown>>
      }
}

/** Fragments between two yields to the event loop. */
const FRAGMENTS_A_TURN = 4
const CHARACTERS_A_TOKEN = 4

export async function streamReply(
  reply: Reply,
  inputTokens: number,
  maxOutputTokens: number,
  onDelta: (delta: ModelDelta) => void,
  signal: AbortSignal,
): Promise<ModelOutcome> {
  const parts: AssistantPart[] = []
  let left = maxOutputTokens * CHARACTERS_A_TOKEN
  let reasoned = 0
  let spent = 0

  /** Streams as much as the budget allows. Returns false if the call was aborted. */
  async function say(type: 'reasoning' | 'text', whole: string): Promise<boolean> {
    const text = cut(whole, left)
    let said = ''
    for (const [i, fragment] of fragmentsOf(text).entries()) {
      if (i % FRAGMENTS_A_TURN === 0) await turn()
      if (signal.aborted) break
      onDelta({ type, text: fragment })
      said += fragment
    }
    left -= said.length
    spent += said.length
    if (type === 'reasoning') reasoned += said.length
    if (said !== '') parts.push({ type, text: said })
    return !signal.aborted
  }

  function tokens(): TokenCount {
    return { input: inputTokens, output: estimateTokens(spent), cachedInput: 0, reasoning: estimateTokens(reasoned) }
  }
  function aborted(): ModelOutcome {
    return {
      ok: false,
      failure: { kind: 'aborted', message: 'The call was aborted.', retryable: false },
      tokens: tokens(),
    }
  }
  function done(finish: FinishReason): ModelOutcome {
    return { ok: true, message: { role: 'assistant', content: parts }, finish, tokens: tokens() }
  }

  if (signal.aborted || !(await say('reasoning', reply.reasoning))) return aborted()
  if (left <= 0) return done('length')
  if (reply.move.kind === 'text') {
    const fits = reply.move.text.length <= left
    return (await say('text', reply.move.text)) ? done(fits ? 'stop' : 'length') : aborted()
  }
  const { callId, name, args } = reply.move
  const argsText = JSON.stringify(args)
  // A call that does not fit the budget is not made.
  if (name.length + argsText.length > left) {
    spent += left
    return done('length')
  }
  spent += name.length + argsText.length
  parts.push({ type: 'tool_call', callId, name, argsText, args })
  return done('tool_calls')
}

/** Truncates, but never inside a surrogate pair. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text
  return /[\uD800-\uDBFF]/.test(text[length - 1] ?? '') ? text.slice(0, length - 1) : text.slice(0, length)
}

/** Splits into fragments of a few words, with the space after them. */
function fragmentsOf(text: string): string[] {
  return text.match(/(?:\S+\s*){1,4}|\s+/g) ?? []
}
