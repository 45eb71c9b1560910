/**
 * The model's next turn, with retries:
 *
 *   a call fails ─┬─ no part of the answer was shown ──▶ it is retried, then the fallbacks are called
 *                 └─ part of the answer was shown ──▶ that part is stored, and the next call continues it
 *
 * No text is shown twice. Each billed call is stored and counted.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { StopReason } from '../../domain/event.ts'
import { type AssistantMessage, type FinishReason, toolCalls } from '../../domain/message.ts'
import { CONTINUE, LAST_TURN } from '../../domain/prompts.ts'
import type { CatalogueEntry, ModelFailure, ModelOutcome } from '../../models/port.ts'
import { type Allowance, allowance } from './allowance.ts'
import {
  type AnswerState,
  callModel,
  endUnanswered,
  fallbackName,
  type ModelCall,
  promptCharacters,
  takeFailedCall,
} from './call-model.ts'
import type { AgentContext } from './context.ts'
import { doesNotFit, leaveOutNewMedia, makeRoom, makeRoomAfter, outputRoom } from './context-room.ts'
import type { OutputRouter } from './output-router.ts'

/** A turn that the model ended. The caller stores it (`Conversation.take`). */
export interface ModelTurn {
  readonly message: AssistantMessage
  readonly finish: FinishReason
  readonly model: string | undefined
  readonly speaker: OutputRouter
  /** It continues an answer that broke off. */
  readonly continued: boolean
  /** The limit of the turn, and whether it is the last one. */
  readonly allowed: Pick<Allowance, 'limit' | 'last'>
}

/** `exhausted` is the limit that leaves no room for a turn. */
export type TurnOutcome = ModelTurn | { readonly exhausted: StopReason } | { readonly failure: ModelFailure }

/** Consecutive calls of one model that fail without new text. The model itself retries before its first output. */
const MAX_TRIES = 5
/** Refusals of one turn because of the context window, after which its request is shortened. */
const MAX_SHORTENED = 3
/** Continuations of one turn. */
const MAX_CONTINUATIONS = 8
/** Exponential backoff with full jitter before a retry, in milliseconds. */
const FIRST_BACKOFF_MS = 500
const LONGEST_BACKOFF_MS = 8_000
const REFUSED = 'Its provider refused the answer (content filter).'

/** `announced`: the model already knows that its next reply is the last. Rejects with the signal's reason when the run stops. */
export async function takeTurn(context: AgentContext, answer: AnswerState, announced: boolean): Promise<TurnOutcome> {
  const { models, conversation } = context
  const recovery = createRecovery(context, answer)
  for (;;) {
    const entry = recovery.entry()
    await context.frame.refresh()
    await makeRoom(context, entry)
    const usesTools = context.frame.for(entry).tools.length > 0
    const allowed = await allowance(context, entry.price, promptCharacters(context), usesTools)
    if (allowed.tokens < 1) return { exhausted: allowed.limit }
    if (allowed.last && !announced) conversation.ask(LAST_TURN)
    if (usesTools && !allowed.last) await context.notices.send()
    announced ||= allowed.last
    const tokens = Math.min(allowed.tokens, outputRoom(context, entry))
    const call = await callModel(context, entry, tokens, recovery.answer())
    const { outcome, speaker } = call
    if (outcome.ok && outcome.overflow?.window) context.windows.learn(entry, outcome.overflow, 0)
    if (outcome.ok && !(isRefused(outcome, call, recovery.answer()) && recovery.afterRefusal(entry, call))) {
      const message = { ...outcome.message, answered: call.digest }
      const limit = call.spent ? 'budget_exceeded' : allowed.limit
      const model = fallbackName(models, entry)
      const continued = recovery.answer().continues !== ''
      return { message, finish: outcome.finish, model, speaker, continued, allowed: { limit, last: allowed.last } }
    }
    if (outcome.ok) continue
    const { failure, waitMs } = await recovery.after(entry, call, outcome.failure)
    if (waitMs === undefined) {
      endUnanswered(context, speaker)
      return { failure }
    }
    await delay(waitMs, undefined, { signal: context.run.signal }).catch(() => {})
    if (context.run.signal.aborted) throw context.run.signal.reason
  }
}

/** True if the provider filtered a reply before any of it was shown. */
function isRefused({ message, finish }: Answered, { speaker }: ModelCall, { continues }: AnswerState): boolean {
  return finish === 'content_filter' && toolCalls(message).length === 0 && speaker.shown() === '' && continues === ''
}

type Answered = Extract<ModelOutcome, { ok: true }>

interface Recovery {
  /** The model of the next call. */
  entry(): CatalogueEntry
  answer(): AnswerState
  /** Stores a failed call and prepares the next one. */
  after(entry: CatalogueEntry, call: ModelCall, failure: ModelFailure): Promise<Next>
  /** Stores a refused call if a fallback can answer instead; else returns false. */
  afterRefusal(entry: CatalogueEntry, call: ModelCall): boolean
}

interface Next {
  /** The failure, with what could not be done about it. */
  readonly failure: ModelFailure
  /** Milliseconds. Undefined if there is no next call. */
  readonly waitMs: number | undefined
}

/** Retries, fallbacks and continuations after the failed calls of one turn. */
function createRecovery(context: AgentContext, start: AnswerState): Recovery {
  const { run, models, conversation } = context
  let answer = start
  let model = 0
  let fruitless = 0
  let continuations = 0
  let retries = 0
  let shortened = 0

  function continueAnswer(shown: string): 'retry' | 'never' {
    answer = { started: true, continues: answer.continues + shown }
    conversation.ask(CONTINUE)
    fruitless = 0
    return ++continuations <= MAX_CONTINUATIONS ? 'retry' : 'never'
  }

  function fallBack(entry: CatalogueEntry, { message }: Pick<ModelFailure, 'message'>): boolean {
    const next = models[model + 1]
    if (!next) return false
    model++
    fruitless = 0
    run.recorder.append({
      type: 'warning',
      code: 'model_fallback',
      param: 'model',
      message: `The model ${entry.name} did not answer, so ${next.name} was asked. ${message}`,
    })
    return true
  }

  /** Shortens a request that the provider refused because of its length. Undefined if that was not the reason. */
  async function shorten(
    entry: CatalogueEntry,
    { spoke }: ModelCall,
    failure: ModelFailure,
  ): Promise<Next | undefined> {
    if (spoke || !failure.tooLong) return undefined
    const shorter = ++shortened <= MAX_SHORTENED && (await makeRoomAfter(context, entry, failure.tooLong))
    return shorter ? { failure, waitMs: 0 } : { failure: doesNotFit(context, entry, failure), waitMs: undefined }
  }

  /** Leaves out new images if the provider refused them, so that they do not end the run. */
  async function withoutRefusedMedia({ spoke }: ModelCall, failure: ModelFailure): Promise<boolean> {
    model = 0
    return failure.kind === 'refused' && !spoke && leaveOutNewMedia(context)
  }

  function mayRetry({ retryable }: ModelFailure): boolean {
    return retryable && ++fruitless < MAX_TRIES
  }

  /** The next step after a call without new text. A model that sent nothing is replaced by its fallback. */
  async function afterNothing(
    entry: CatalogueEntry,
    call: ModelCall,
    failure: ModelFailure,
  ): Promise<'retry' | 'now' | 'never'> {
    if (call.spoke && mayRetry(failure)) return 'retry'
    if (fallBack(entry, failure)) return 'now'
    if (!call.spoke && answer.continues !== '' && mayRetry(failure)) return 'retry'
    return (await withoutRefusedMedia(call, failure)) ? 'now' : 'never'
  }

  return {
    entry: () => models[model]!,
    answer: () => answer,
    afterRefusal(entry, call) {
      if (!models[model + 1]) return false
      takeFailedCall(context, entry, call)
      return fallBack(entry, { message: REFUSED })
    },
    async after(entry, call, refused) {
      takeFailedCall(context, entry, call)
      const shorter = await shorten(entry, call, refused)
      if (shorter?.waitMs !== undefined) return shorter
      const { failure } = shorter ?? { failure: refused }
      const shown = call.speaker.shown()
      const next = shown === '' ? await afterNothing(entry, call, failure) : continueAnswer(shown)
      if (next !== 'retry') return { failure, waitMs: next === 'now' ? 0 : undefined }
      run.recorder.append({ type: 'model_retried', attempt: ++retries, reason: failure.message })
      return { failure, waitMs: Math.random() * Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** fruitless) }
    },
  }
}
