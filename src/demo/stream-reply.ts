/**
 * A move as a model's streamed reply: in fragments, within the token budget, ending soon after an abort. Nothing
 * sleeps; the loop gets a turn now and then, so that a stream is alive and an abort is seen.
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

/** Fragments between two turns of the event loop. */
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

  /** Says as much as the budget holds; false where the run was aborted meanwhile. */
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
  // Half a call is no call: where it does not fit, the budget is what ended the turn.
  if (name.length + argsText.length > left) {
    spent += left
    return done('length')
  }
  spent += name.length + argsText.length
  parts.push({ type: 'tool_call', callId, name, argsText, args })
  return done('tool_calls')
}

/** Never between the halves of a surrogate pair. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text
  return /[\uD800-\uDBFF]/.test(text[length - 1] ?? '') ? text.slice(0, length - 1) : text.slice(0, length)
}

/** A few words each, with the space behind them. */
function fragmentsOf(text: string): string[] {
  return text.match(/(?:\S+\s*){1,4}|\s+/g) ?? []
}
