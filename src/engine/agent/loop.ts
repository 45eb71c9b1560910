/**
 * The agent loop: model ⇄ tools until the model has answered or a limit is reached. Each tool call is stored before it runs
 * (intent) and after it (result). Failures are values. Exceptions are a Stop (`signal`), a stopped recorder, or lost
 * infrastructure.
 */
import { type RunError, toRunError } from '../../domain/errors.ts'
import type { StopReason } from '../../domain/event.ts'
import { answerText, type FinishReason, isSilent, partialMessage, toolCalls } from '../../domain/message.ts'
import { CONTINUE, correction, REMINDER } from '../../domain/prompts.ts'
import type { TurnFinish } from '../../store/turns.ts'
import { BUDGET_SPENT } from '../budgets.ts'
import type { Refusal, Restored } from '../run/restore.ts'
import { performCalls, resumeCalls } from './batch.ts'
import { type AnswerState, promptCharacters } from './call-model.ts'
import type { AgentContext } from './context.ts'
import { type ModelTurn, takeTurn } from './model-turn.ts'

export type LoopEnd =
  | { readonly status: 'completed'; readonly stopReason: StopReason }
  | { readonly status: 'failed'; readonly error: RunError }

/** Answers that may violate the response format before the run fails. */
const FORMAT_TRIES = 3
/** Replies to the request for a last answer. The second is for a model that calls tools in the first. */
const LAST_TURNS = 2

export async function runLoop(context: AgentContext): Promise<LoopEnd> {
  const { conversation } = context
  const { restored } = context.run.past
  if (restored.openBatch) conversation.push(await resumeCalls(context, restored.openBatch))
  const ended = await resume(context, restored)
  if (ended) return ended

  let answer: AnswerState = {
    started: restored.answerStarted || restored.unfinished !== '',
    continues: restored.continues + restored.unfinished,
  }
  let formatTries = 0
  let lastTurns = 0
  let reminded = restored.reminded || restored.emptyReply
  for (;;) {
    const turn = await takeTurn(context, answer, lastTurns > 0)
    if ('exhausted' in turn) return exhausted(context, turn.exhausted)
    if ('failure' in turn) return failed(turn.failure.message, turn.failure.retryable)
    const { speaker, message, finish, allowed } = turn
    const calls = toolCalls(message)
    if (allowed.last) lastTurns++
    if (calls.length > 0 && lastTurns < LAST_TURNS) {
      speaker.endBeforeTools()
      conversation.take(turn)
      const refusal = refusalOf(finish, allowed.last)
      conversation.push(await performCalls(context, calls, refusal))
    } else if (!reminded && isEmptyReply(context, turn)) {
      reminded = true
      speaker.drop()
      conversation.take(turn)
      conversation.ask(REMINDER)
    } else {
      const problem = await answerProblem(context, finish, speaker.held())
      if (problem === undefined) {
        speaker.endAsAnswer()
        conversation.take(turn)
        return { status: 'completed', stopReason: stopReason(context, turn) }
      }
      speaker.drop()
      if (++formatTries === FORMAT_TRIES)
        return failed(`The model's answer did not match responseFormat in ${FORMAT_TRIES} tries: ${problem}`)
      conversation.take(turn)
      conversation.ask(correction(problem))
    }
    answer = { started: speaker.answerStarted(), continues: '' }
  }
}

/** Continues the last turn of an earlier worker. Returns the end if the answer was complete. */
async function resume(context: AgentContext, restored: Restored): Promise<LoopEnd | undefined> {
  const { conversation, notices } = context
  const { unfinished, continues } = restored
  // First the messages that the last call was sent, if it is not stored.
  if (continues !== '') conversation.ask(CONTINUE)
  const ended = await checkClosingTurn(context, restored)
  if (ended) return ended
  notices.repeat(restored.unansweredNotices)
  return unfinished === '' ? undefined : takeUnfinished(context, unfinished)
}

/** Asks for a better answer if the last stored turn needs one. Otherwise returns the end. */
async function checkClosingTurn(context: AgentContext, restored: Restored): Promise<LoopEnd | undefined> {
  const { run, conversation } = context
  const { closingTurn, emptyReply, reminded, unfinished } = restored
  if (!closingTurn) return undefined
  const { finish, message } = closingTurn
  const problem = await answerProblem(context, finish, answerText(message))
  if (problem !== undefined) conversation.ask(correction(problem))
  else if (emptyReply && !reminded && !run.spec.responseFormat) conversation.ask(REMINDER)
  else if (unfinished === '') return { status: 'completed', stopReason: reasonOf(context, finish, 'max_output_tokens') }
  return undefined
}

/** Stores the shown part of a call that the server's death interrupted. Returns the end if the answer was complete. */
function takeUnfinished(context: AgentContext, unfinished: string): LoopEnd | undefined {
  const { run, conversation, models } = context
  const { meter, spec } = run
  meter.startCall(promptCharacters(context), models[0].price)
  meter.say(unfinished.length)
  meter.addCall(meter.estimate())
  // With a response format, only a complete and checked answer is ever shown.
  const finish = spec.responseFormat ? 'stop' : 'broken'
  conversation.take({ message: partialMessage(unfinished), finish, model: undefined })
  if (finish === 'stop') return { status: 'completed', stopReason: 'end_turn' }
  conversation.ask(CONTINUE)
  return undefined
}

/** A continuation may be empty: the part before it is the answer. With a response format, an empty reply is corrected. */
function isEmptyReply({ run: { spec } }: AgentContext, { message, finish, continued }: ModelTurn): boolean {
  return finish === 'stop' && !continued && spec.responseFormat === undefined && isSilent(message)
}

function refusalOf(finish: FinishReason, last: boolean): Refusal | undefined {
  return finish === 'length' ? 'truncated' : last ? 'declined' : undefined
}

function failed(message: string, retryable?: boolean): LoopEnd {
  return { status: 'failed', error: toRunError('model_error', message, retryable) }
}

/** The end when a limit is reached. Without any budget for a first call, the run has failed. */
function exhausted({ run: { meter } }: AgentContext, stopReason: StopReason): LoopEnd {
  if (stopReason !== 'budget_exceeded' || meter.modelCalls() > 0) return { status: 'completed', stopReason }
  return { status: 'failed', error: toRunError('budget_exceeded', BUDGET_SPENT) }
}

/** The error in a finished answer. An answer that was cut off is not checked. */
async function answerProblem(
  { deps, run: { claim, spec, signal } }: AgentContext,
  finish: TurnFinish,
  answer: string,
): Promise<string | undefined> {
  return finish === 'stop' ? deps.schemas.faultOf(claim.projectId, spec.responseFormat, answer, signal) : undefined
}

function stopReason(context: AgentContext, { finish, allowed }: ModelTurn): StopReason {
  return allowed.last ? allowed.limit : reasonOf(context, finish, allowed.limit)
}

/** Why the answer ended. A provider may have exceeded a limit without being cut off. */
function reasonOf({ run: { spec, meter } }: AgentContext, finish: TurnFinish, limit: StopReason): StopReason {
  const { maxOutputTokens, maxCost } = spec.policy
  if (finish === 'length') return limit
  if (meter.outputTokens() > maxOutputTokens) return 'max_output_tokens'
  if (maxCost !== undefined && (meter.cost() ?? 0) > maxCost) return 'max_cost'
  return finish === 'content_filter' ? 'content_filter' : 'end_turn'
}
