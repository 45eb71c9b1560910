/**
 * The agent loop: model ⇄ tools until the model has answered or a budget is used up. Everything it does is an event, told
 * before it is done (intent before act) and again when it is over. A failure is a value; what is thrown is a Stop
 * (`signal`), a lost recorder, or lost infrastructure.
 */
import { type RunError, toRunError } from '../domain/errors.ts'
import type { StopReason } from '../domain/event.ts'
import type { RunSpec } from '../domain/interaction.ts'
import {
  type AssistantMessage,
  countCharacters,
  type Message,
  visibleTo,
  withinMedia,
  withoutNewestMedia,
} from '../domain/message.ts'
import { costOf, estimateTokens, type Price } from '../domain/usage.ts'
import type { CatalogueEntry, FinishReason, Model, ModelOutcome, ModelRequest } from '../models/port.ts'
import type { Database } from '../store/port.ts'
import { insertTurnStatement } from '../store/turns.ts'
import { BUDGET_SPENT } from './budgets.ts'
import { checkAnswer } from './check-answer.ts'
import { askedTools, correction, type Restored } from './restore.ts'
import { createSpeaker, type Speaker } from './speaker.ts'
import { type CallContext, performCall } from './tool-call.ts'

export interface LoopContext extends CallContext {
  readonly interactionId: string
  readonly spec: RunSpec
  /** The model that was asked for, and behind it those that are asked where it fails. */
  readonly models: readonly [CatalogueEntry, ...CatalogueEntry[]]
  readonly db: Database
  readonly system: string | undefined
  /** The conversation up to and with the instruction. */
  readonly opening: readonly Message[]
  readonly restored: Restored
  readonly maxModelCalls: number
  /** Of the project, for this month. */
  readonly budget: {
    /** US dollars that are left. */
    left(): Promise<number>
    /** Whether what the model says is to be cut off. */
    isSpent(): boolean
  }
}

export type LoopEnd =
  | { readonly status: 'completed'; readonly stopReason: StopReason }
  | { readonly status: 'failed'; readonly error: RunError }

/** How often an answer that does not fit the response format goes back to the model. */
const FORMAT_TRIES = 3

export async function runLoop(context: LoopContext): Promise<LoopEnd> {
  const { restored } = context
  if (restored.answerBroken) {
    return failed(
      'The server was interrupted after part of the answer had been shown, and an answer is never started over. Send the instruction again.',
    )
  }
  const messages: Message[] = [...context.opening, ...restored.messages]
  for (const open of restored.openCalls) messages.push(await performCall(context, open.call, open))
  if (restored.closingTurn) {
    const { finish, message } = restored.closingTurn
    const problem = await answerProblem(context, finish, answerText(message))
    if (problem === undefined)
      return { status: 'completed', stopReason: stopReason(context, finish, 'max_output_tokens') }
    messages.push(correction(problem))
  }

  let { answerStarted } = restored
  let formatTries = 0
  for (;;) {
    const turn = await takeTurn(context, messages, answerStarted)
    if ('exhausted' in turn) return exhausted(context, turn.exhausted)
    const { outcome, speaker, limit } = turn
    if (!outcome.ok) {
      // A picture that can't be read must not end the run: the model is told, and goes on without.
      const plain = outcome.failure.kind === 'refused' ? withoutNewestMedia(messages) : undefined
      if (!plain) return failed(outcome.failure.message, outcome.failure.retryable)
      messages.splice(0, messages.length, ...plain)
      continue
    }
    messages.push(outcome.message)

    const calls = askedTools(outcome)
    if (calls.length > 0) {
      speaker.endBeforeTools()
      recordTurn(context, turn, outcome)
      for (const call of calls) messages.push(await performCall(context, call))
    } else {
      const problem = await answerProblem(context, outcome.finish, speaker.held())
      if (problem === undefined) {
        speaker.endAsAnswer()
        recordTurn(context, turn, outcome)
        return { status: 'completed', stopReason: stopReason(context, outcome.finish, limit) }
      }
      if (++formatTries === FORMAT_TRIES) {
        speaker.drop()
        return failed(`The model's answer did not match responseFormat in ${FORMAT_TRIES} tries: ${problem}`)
      }
      speaker.drop()
      recordTurn(context, turn, outcome)
      messages.push(correction(problem))
    }
    answerStarted = speaker.answerStarted()
  }
}

function failed(message: string, retryable?: boolean): LoopEnd {
  return { status: 'failed', error: toRunError('model_error', message, retryable) }
}

/** A budget is used up. A run that its project's lets not even begin has failed. */
function exhausted({ meter }: LoopContext, stopReason: StopReason): LoopEnd {
  if (stopReason !== 'budget_exceeded' || meter.modelCalls() > 0) return { status: 'completed', stopReason }
  return { status: 'failed', error: toRunError('budget_exceeded', BUDGET_SPENT) }
}

/** What is wrong with an answer that came to its own end; a cut one is as it is. */
async function answerProblem(
  { spec, signal }: LoopContext,
  finish: FinishReason,
  answer: string,
): Promise<string | undefined> {
  return finish === 'stop' ? checkAnswer(spec.responseFormat, answer, signal) : undefined
}

function answerText(message: AssistantMessage): string {
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** What the next model call may say, and which limit says so. */
interface Allowance {
  readonly tokens: number
  readonly limit: StopReason
}

/** No tokens: a budget is used up, and there is no further call. */
async function allowance(
  { spec, meter, maxModelCalls, budget }: LoopContext,
  price: Price | undefined,
  promptCharacters: number,
): Promise<Allowance> {
  if (meter.modelCalls() >= maxModelCalls) return { tokens: 0, limit: 'max_model_calls' }
  const { maxOutputTokens, maxCost } = spec.policy
  const affordable = (cost: number) => meter.affordable(cost, price, promptCharacters)
  const left = await budget.left()
  const bounds: readonly Allowance[] = [
    { tokens: Math.max(0, maxOutputTokens - meter.outputTokens()), limit: 'max_output_tokens' },
    { tokens: affordable(maxCost ?? Number.POSITIVE_INFINITY), limit: 'max_cost' },
    { tokens: affordable((meter.cost() ?? 0) + left), limit: 'budget_exceeded' },
  ]
  return bounds.reduce((least, each) => (each.tokens < least.tokens ? each : least))
}

/** Why the answer ended where it did. A provider may have gone over a limit without being cut off. */
function stopReason({ spec, meter }: LoopContext, finish: FinishReason, limit: StopReason): StopReason {
  const { maxOutputTokens, maxCost } = spec.policy
  if (finish === 'length') return limit
  if (meter.outputTokens() > maxOutputTokens) return 'max_output_tokens'
  if (maxCost !== undefined && (meter.cost() ?? 0) > maxCost) return 'max_cost'
  return finish === 'content_filter' ? 'content_filter' : 'end_turn'
}

function promptCharacters({ system }: LoopContext, messages: readonly Message[]): number {
  return countCharacters(messages) + (system?.length ?? 0)
}

interface ModelTurn {
  readonly outcome: ModelOutcome
  readonly speaker: Speaker
  /** Which model it was. */
  readonly entry: CatalogueEntry
  /** What bounds the answer. */
  readonly limit: StopReason
}

/** The model's next turn, or that of the first fallback that can say anything. `exhausted`: the limit that leaves no room for one. */
async function takeTurn(
  context: LoopContext,
  messages: readonly Message[],
  answerStarted: boolean,
): Promise<ModelTurn | { readonly exhausted: StopReason }> {
  const { models, recorder } = context
  for (const [i, entry] of models.entries()) {
    const allowed = await allowance(context, entry.price, promptCharacters(context, messages))
    if (allowed.tokens < 1) return { exhausted: allowed.limit }
    const { said, spent, ...turn } = await callModel(context, entry, messages, allowed.tokens, answerStarted)
    const next = models[i + 1]
    if (turn.outcome.ok || said || !next) return { ...turn, entry, limit: spent ?? allowed.limit }
    recorder.append({
      type: 'warning',
      code: 'model_fallback',
      param: 'model',
      message: `The model ${entry.name} did not answer, so ${next.name} was asked. ${turn.outcome.failure.message}`,
    })
  }
  throw new Error('a run has a model')
}

/** One model call, told as it speaks. Its tokens are counted whatever its outcome. */
async function callModel(
  context: LoopContext,
  entry: CatalogueEntry,
  messages: readonly Message[],
  maxOutputTokens: number,
  answerStarted: boolean,
) {
  const { run, observe, redactor, spec, meter, recorder, signal } = context
  const request: ModelRequest = {
    system: context.system,
    messages: withinMedia(visibleTo(messages, entry)),
    tools: [...context.toolbox.tools().values()].map((tool) => tool.definition),
    maxOutputTokens,
    responseFormat: spec.responseFormat,
    search: entry.searches === true && spec.tools.includes('web_search'),
  }
  const speaker = createSpeaker({
    emit(event) {
      recorder.append(event)
      context.onPoint?.('model-speaks')
    },
    nextStep: context.nextStep,
    hold: spec.responseFormat ? 'everything' : request.tools.length > 0 || request.search ? 'start' : 'nothing',
    answerStarted,
  })
  meter.startCall(promptCharacters(context, messages), entry.price)
  const startedAt = performance.now()
  const { outcome, firstAt, spent } = await callWithinBudget(await entry.open(), request, speaker, context)
  const tokens = outcome.tokens ?? meter.estimate()
  observe({
    type: 'model_called',
    run,
    model: entry,
    request,
    outcome,
    tokens,
    cost: entry.price && costOf(tokens, entry.price),
    firstMs: firstAt && firstAt - startedAt,
    redact: redactor.redact,
    ms: performance.now() - startedAt,
  })
  // What a broken call said stays readable; half a JSON value is no answer.
  if (!outcome.ok) spec.responseFormat ? speaker.drop() : speaker.endAsAnswer()
  if (signal.aborted) throw signal.reason
  if (outcome.ok || outcome.tokens || tokens.output > 0) meter.addCall(tokens)
  else meter.dropCall()
  return { outcome, speaker, said: firstAt !== undefined, spent }
}

/**
 * Calls the model and cuts it off where it says far more than it was allowed: a provider may ignore its limit. Tokens are
 * only estimated here, so the cut comes late (twice the budget) and the provider's own limit is what normally holds. Also
 * where the project's budget was spent meanwhile, by other runs: `spent`. `firstAt`: when it first said anything, by
 * `performance.now()`.
 */
async function callWithinBudget(
  model: Model,
  request: ModelRequest,
  speaker: Speaker,
  { meter, signal, budget }: LoopContext,
): Promise<{ readonly outcome: ModelOutcome; readonly firstAt: number | undefined; readonly spent?: StopReason }> {
  const cut = new AbortController()
  let overrun = false
  const onStop = () => cut.abort(signal.reason)
  signal.addEventListener('abort', onStop)
  if (signal.aborted) onStop()
  const cutAt = 2 * request.maxOutputTokens + 64
  let text = ''
  let characters = 0
  let spent: StopReason | undefined
  let firstAt: number | undefined
  const outcome = await model
    .call(
      request,
      (delta) => {
        if (overrun) return
        firstAt ??= performance.now()
        if (delta.type === 'reasoning_block') return speaker.reasoningBlock()
        if (delta.type === 'provider_tool') {
          meter.addToolCall()
          return speaker.providerTool(delta)
        }
        meter.say(delta.text.length)
        characters += delta.text.length
        if (delta.type === 'reasoning') speaker.reasoning(delta.text)
        else {
          text += delta.text
          speaker.text(delta.text)
        }
        if (budget.isSpent()) spent = 'budget_exceeded'
        if (spent || estimateTokens(characters) > cutAt) {
          overrun = true
          cut.abort()
        }
      },
      cut.signal,
    )
    .finally(() => signal.removeEventListener('abort', onStop))
  if (!overrun || signal.aborted) return { outcome, firstAt }
  const message = { role: 'assistant', content: [{ type: 'text', text }] } as const
  return { outcome: { ok: true, message, finish: 'length', tokens: outcome.tokens }, firstAt, spent }
}

function recordTurn(
  { db, interactionId, meter, recorder, models }: LoopContext,
  { entry }: ModelTurn,
  { message, finish }: ModelOutcome & { ok: true },
): void {
  const model = entry === models[0] ? undefined : entry.name
  const turn = meter.modelCalls()
  const tokens = meter.lastCall()
  const cost = meter.lastCost()
  recorder.attach((atSeq) =>
    insertTurnStatement(db, interactionId, { turn, message, finish, tokens, atSeq, model }, cost),
  )
}
