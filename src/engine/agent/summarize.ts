/** Asks the model for a summary of its conversation. Nothing of the reply is shown. */
import { summaryRequest } from '../../domain/context.ts'
import { answerText, type Message, partialMessage } from '../../domain/message.ts'
import { parametersIn } from '../../domain/model-parameters.ts'
import type { CatalogueEntry, ModelRequest } from '../../models/port.ts'
import { allowance } from './allowance.ts'
import { cachingOf, exchange, fallbackName, promptCharacters, takeFailedCall } from './call-model.ts'
import type { AgentContext } from './context.ts'
import { shortened } from './context-plan.ts'
import type { TakenTurn } from './conversation.ts'
import type { OutputRouter } from './output-router.ts'
import { viewOf } from './view.ts'

/** Calls for one summary. The model itself retries before its first output. */
const TRIES = 2
/** Maximum output tokens of a summary, also as a share of the window. */
const MAX_TOKENS = 8_192
const SHARE_OF_WINDOW = 1 / 8
/** Characters that are kept of a summary. */
const MAX_CHARACTERS = 4 * MAX_TOKENS
/** A refused request is sent once more with this share of its characters. */
const SHRINK = 0.7

/** Tokens of the window that a summary needs: its own, and those of the request for it. */
export function summaryTokens(window: number): number {
  return Math.min(MAX_TOKENS, Math.floor(window * SHARE_OF_WINDOW))
}

/**
 * The turn that wrote a summary of `messages`; the caller stores it. `room`: characters of the conversation that the window
 * has room for. Undefined if it failed, or if the run's limits leave no room for it.
 */
export async function summarize(
  context: AgentContext,
  entry: CatalogueEntry,
  messages: readonly Message[],
  window: number,
  room: number,
): Promise<TakenTurn | undefined> {
  let most = room
  for (let tries = 0; tries < TRIES; tries++) {
    const allowed = await allowance(context, entry.price, promptCharacters(context), true)
    if (allowed.last || allowed.tokens < 1) return undefined
    const maxOutputTokens = Math.min(allowed.tokens, summaryTokens(window))
    const call = await exchange(context, entry, requestFor(context, entry, messages, most, maxOutputTokens), SILENT)
    const { outcome } = call
    if (outcome.ok) {
      const text = answerText(outcome.message).trim().slice(0, MAX_CHARACTERS)
      const model = fallbackName(context.models, entry)
      if (text !== '') return { message: partialMessage(text), finish: 'summary', model }
    } else if (outcome.failure.tooLong) most *= SHRINK
    else if (!outcome.failure.retryable) {
      takeFailedCall(context, entry, call)
      return undefined
    }
    takeFailedCall(context, entry, call)
  }
  return undefined
}

/** The conversation as the model has it, so that its provider's prompt cache applies, with one more message. */
function requestFor(
  context: AgentContext,
  entry: CatalogueEntry,
  messages: readonly Message[],
  most: number,
  maxOutputTokens: number,
): ModelRequest {
  const { spec, claim } = context.run
  // An answer in the caller's format could not be a summary.
  const frame = { ...context.frame.for(entry), responseFormat: undefined }
  const view = viewOf(shortened(messages, most), { ...frame, entry })
  const request = summaryRequest(spec.policy.context?.instructions)
  const cache = cachingOf(spec, claim.id)
  return { ...frame, messages: [...view.messages, request], maxOutputTokens, parameters: parametersIn(spec), cache }
}

const SILENT: OutputRouter = {
  reasoning() {},
  reasoningBlock() {},
  text() {},
  providerTool() {},
  endBeforeTools() {},
  endAsAnswer() {},
  endBroken() {},
  shown: () => '',
  held: () => '',
  drop() {},
  answerStarted: () => false,
}
