/** One model call: builds the request, streams the answer as events, counts tokens and enforces the bounds. */
import type { RunSpec } from '../../domain/interaction.ts'
import { mayNeedApproval } from '../../domain/mcp.ts'
import { partialMessage } from '../../domain/message.ts'
import { parametersIn } from '../../domain/model-parameters.ts'
import { costOf, estimateTokens } from '../../domain/usage.ts'
import type { CallNotice, CatalogueEntry, ModelOutcome, ModelRequest, PromptCaching } from '../../models/port.ts'
import { stopCause } from '../run/stop.ts'
import type { AgentContext } from './context.ts'
import { createOutputRouter, type OutputRouter } from './output-router.ts'
import { viewOf } from './view.ts'

/** State of the answer when a call begins. */
export interface AnswerState {
  /** Part of the answer was shown. */
  readonly started: boolean
  /** The shown text of the broken turns that the call continues. */
  readonly continues: string
}

export interface ModelCall {
  readonly outcome: ModelOutcome
  readonly speaker: OutputRouter
  /** Digest of the request. */
  readonly digest: string
  /** The model sent output, if only reasoning. */
  readonly spoke: boolean
  /** The provider probably charges for the call. */
  readonly billed: boolean
  /** The project's budget was exhausted during the call, and the answer was cut off. */
  readonly spent: boolean
}

const EMPTY_MESSAGE = { role: 'assistant', content: [] } as const

/** Characters of the next request, for estimates. */
export function promptCharacters({ frame, models, conversation }: AgentContext): number {
  return conversation.characters() + (frame.for(models[0]).system?.length ?? 0)
}

/**
 * Calls the model once. The meter has counted the call when this resolves. Rejects with the signal's reason when the run is
 * stopped. The partial output is stored if another worker continues the run; otherwise it becomes part of the answer.
 */
export async function callModel(
  context: AgentContext,
  entry: CatalogueEntry,
  maxOutputTokens: number,
  { started, continues }: AnswerState,
): Promise<ModelCall> {
  const { deps, run, conversation } = context
  const { spec, recorder } = run
  const frame = context.frame.for(entry)
  const { messages, digest } = viewOf(conversation.messages(), { ...frame, entry })
  const cache = cachingOf(spec, run.claim.id)
  const request: ModelRequest = { ...frame, messages, maxOutputTokens, parameters: parametersIn(spec), cache }
  const speaker = createOutputRouter({
    emit(event) {
      recorder.append(event)
      deps.onPoint?.('model-speaks')
    },
    nextStep: context.nextStep,
    hold: spec.responseFormat ? 'everything' : request.tools.length > 0 || request.search ? 'start' : 'nothing',
    answerStarted: started,
    continues,
  })
  return { ...(await exchange(context, entry, request, speaker)), digest }
}

/** Sends a request and passes its answer to `speaker`. Counts the call, and rejects if the run is stopped, like `callModel`. */
export async function exchange(
  context: AgentContext,
  entry: CatalogueEntry,
  request: ModelRequest,
  speaker: OutputRouter,
): Promise<Omit<ModelCall, 'digest'>> {
  const { meter, signal } = context.run
  meter.startCall(promptCharacters(context), entry.price)
  const startedAt = performance.now()
  const { outcome, firstAt, spent } = await callWithinBudget(entry, request, speaker, context)
  const tokens = outcome.tokens ?? meter.estimate()
  observeCall(context, entry, request, outcome, tokens, startedAt, firstAt)
  const billed = outcome.ok || outcome.tokens !== undefined || tokens.output > 0
  if (signal.aborted && stopCause(signal) !== 'shutdown') {
    endUnanswered(context, speaker)
    throw signal.reason
  }
  if (billed) meter.addCall(tokens)
  else meter.dropCall()
  const call = { outcome, speaker, spoke: firstAt !== undefined, billed, spent }
  if (signal.aborted && !outcome.ok) {
    takeFailedCall(context, entry, call)
    throw signal.reason
  }
  return call
}

export function cachingOf({ conversationId, mcp }: RunSpec, runId: string): PromptCaching {
  return { key: conversationId ?? runId, long: mcp.some(({ requireApproval }) => mayNeedApproval(requireApproval)) }
}

/** Stores and counts a billed attempt that the call retries, or records an ignored parameter. */
function takeNotice(
  { run: { meter }, conversation, models, reportIgnored }: AgentContext,
  entry: CatalogueEntry,
  notice: CallNotice,
): void {
  if (notice.type === 'ignored') reportIgnored(notice)
  else {
    meter.addRetried(notice.tokens)
    conversation.take({ message: EMPTY_MESSAGE, finish: 'failed', model: fallbackName(models, entry) })
  }
}

/** Stores the tokens of a billed failed call and the part of the answer that it showed. */
export function takeFailedCall(
  { conversation, models }: Pick<AgentContext, 'conversation' | 'models'>,
  entry: CatalogueEntry,
  { speaker, billed }: Pick<ModelCall, 'speaker' | 'billed'>,
): void {
  const text = speaker.shown()
  const model = fallbackName(models, entry)
  if (text !== '') conversation.take({ message: partialMessage(text), finish: 'broken', model })
  else if (billed) conversation.take({ message: EMPTY_MESSAGE, finish: 'failed', model })
}

/** Undefined for the interaction's own model. */
export function fallbackName(models: AgentContext['models'], entry: CatalogueEntry): string | undefined {
  return entry === models[0] ? undefined : entry.name
}

/** Shows the held output of a call that is not continued. With a response format, partial JSON becomes reasoning. */
export function endUnanswered({ run: { spec } }: Pick<AgentContext, 'run'>, speaker: OutputRouter): void {
  if (spec.responseFormat) speaker.drop()
  else speaker.endBroken()
}

function observeCall(
  { deps, run: { claim, redactor } }: AgentContext,
  model: CatalogueEntry,
  request: ModelRequest,
  outcome: ModelOutcome,
  tokens: NonNullable<ModelOutcome['tokens']>,
  startedAt: number,
  firstAt: number | undefined,
): void {
  const cost = model.price && costOf(tokens, model.price)
  const firstMs = firstAt && firstAt - startedAt
  const ms = performance.now() - startedAt
  deps.emit({
    type: 'model_called',
    run: claim,
    model,
    request,
    outcome,
    tokens,
    cost,
    firstMs,
    redact: redactor.redact,
    ms,
  })
}

/**
 * Calls the model and cuts it off if it greatly exceeds its limit: a provider may ignore the limit. Tokens are only estimated
 * here, so the cut is at twice the limit; normally the provider's own limit applies first. Also cuts the call off when other
 * runs exhaust the project's budget (`spent`). `firstAt` is the time of the first delta, by `performance.now()`.
 */
async function callWithinBudget(
  entry: CatalogueEntry,
  request: ModelRequest,
  speaker: OutputRouter,
  context: AgentContext,
): Promise<{ readonly outcome: ModelOutcome; readonly firstAt: number | undefined; readonly spent: boolean }> {
  const { deps, run } = context
  const { claim, meter, signal } = run
  const model = await entry.open()
  const cut = new AbortController()
  let overrun = false
  const onStop = () => cut.abort(signal.reason)
  signal.addEventListener('abort', onStop)
  if (signal.aborted) onStop()
  const cutAt = 2 * request.maxOutputTokens + 64
  let text = ''
  let characters = 0
  let spent = false
  let firstAt: number | undefined
  const outcome = await model
    .call(
      request,
      (delta) => {
        if (overrun) return
        if (delta.type === 'retried' || delta.type === 'ignored') return takeNotice(context, entry, delta)
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
        spent = deps.budgets.isSpent(claim.projectId)
        if (spent || estimateTokens(characters) > cutAt) {
          overrun = true
          cut.abort()
        }
      },
      cut.signal,
    )
    .finally(() => signal.removeEventListener('abort', onStop))
  if (!overrun || signal.aborted) return { outcome, firstAt, spent: false }
  return {
    outcome: { ok: true, message: partialMessage(text), finish: 'length', tokens: outcome.tokens },
    firstAt,
    spent,
  }
}
