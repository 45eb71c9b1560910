/**
 * Keeps the conversation within the model's context window:
 *
 *   the next call would not fit, or was refused ──▶ old tool results are cleared, in one batch
 *                                    still too large ──▶ older messages are replaced by a summary
 *
 * Each edit changes the prefix that the provider has cached, so edits are few and large. Each is an event before it has an
 * effect: a worker that takes over makes the same request.
 */
import type { ContextEdit } from '../../domain/context.ts'
import { countCharacters } from '../../domain/message.ts'
import { withoutNewMedia } from '../../domain/view.ts'
import type { CatalogueEntry, ModelFailure, Overflow } from '../../models/port.ts'
import type { AgentContext } from './context.ts'
import { type Plan, planClearing, planCompaction } from './context-plan.ts'
import { requestSize } from './context-size.ts'
import { summarize, summaryTokens } from './summarize.ts'

/** Minimum that clearing frees, in tokens and as a share of the window. */
const LEAST_CLEARED_TOKENS = 20_000
const LEAST_CLEARED_SHARE = 1 / 5
/** Maximum share of the window that is kept unchanged. */
const KEPT_SHARE = 1 / 3
/** Clearing alone is enough if it leaves at most this share of the allowed size: otherwise the next edit would follow soon. */
const SETTLED_SHARE = 0.7
/** A refused request must lose at least this share. */
const REFUSED_SHARE = 1 / 5
/** Share of the window that stays unused, because sizes are estimates. */
const MARGIN = 0.05
/** Minimum output tokens of a call. */
const LEAST_OUTPUT_TOKENS = 256

/** Output tokens that fit behind the next request. */
export function outputRoom(context: AgentContext, entry: CatalogueEntry): number {
  const window = context.windows.of(entry)
  if (window === undefined) return Number.POSITIVE_INFINITY
  return Math.max(LEAST_OUTPUT_TOKENS, Math.floor(window * (1 - MARGIN)) - requestSize(context, entry).tokens)
}

/** Makes room before a call that would not fit. */
export async function makeRoom(context: AgentContext, entry: CatalogueEntry): Promise<void> {
  const window = context.windows.of(entry)
  if (window !== undefined) await shrinkTo(context, entry, window, wantedSize(context, window))
}

/** Makes room after the provider refused the prompt. Returns false if nothing can be removed. */
export async function makeRoomAfter(context: AgentContext, entry: CatalogueEntry, refusal: Overflow): Promise<boolean> {
  const { tokens } = requestSize(context, entry)
  context.windows.learn(entry, refusal, tokens)
  const window = context.windows.of(entry)!
  // The provider may count more than the estimate.
  const counted = Math.max(1, (refusal.prompt ?? Math.max(tokens, window)) / tokens)
  const wanted = Math.min(wantedSize(context, window) / counted, tokens * (1 - REFUSED_SHARE))
  return shrinkTo(context, entry, window, wanted)
}

/** The failure of a request that does not fit although nothing can be removed. */
export function doesNotFit(
  context: AgentContext,
  entry: CatalogueEntry,
  { message, ...failure }: ModelFailure,
): ModelFailure {
  const window = context.windows.of(entry)!.toLocaleString('en')
  const tokens = requestSize(context, entry).tokens.toLocaleString('en')
  const text =
    `The request does not fit the context window of ${entry.name}, ${window} tokens, and nothing more can be removed: ` +
    `instruction, system instruction and tools have about ${tokens}. Shorten them, or use a model with a larger window. ${message}`
  return { ...failure, message: text }
}

/** Leaves out the newest images and documents, which the provider refused. Returns false if there are none. */
export async function leaveOutNewMedia({ conversation, run }: AgentContext): Promise<boolean> {
  const messages = conversation.messages().slice(0, conversation.messages().length - conversation.unstored())
  const plain = withoutNewMedia(messages)
  if (!plain) return false
  const changed = messages.filter((message, i) => message !== plain[i])
  const steps = changed.flatMap((message) => (message.role === 'tool' && message.step ? [message.step] : []))
  const tokens = Math.max(0, Math.ceil((countCharacters(messages) - countCharacters(plain)) / 4))
  conversation.edit({ edit: 'media_refused' }, { type: 'context_cleared', steps, tokens, media: true })
  await run.recorder.flush()
  return true
}

/** Tokens that a request may have: room for an answer remains in any case. */
function wantedSize({ deps, run: { spec } }: AgentContext, window: number): number {
  const { compactAt = deps.limits.context.compactAt.default } = spec.policy.context ?? {}
  return Math.min(compactAt * window, window - summaryTokens(window))
}

/** Returns whether anything was removed. */
async function shrinkTo(
  context: AgentContext,
  entry: CatalogueEntry,
  window: number,
  wanted: number,
): Promise<boolean> {
  const before = requestSize(context, entry)
  if (before.tokens <= wanted) return false
  const cleared = clear(context, entry, window)
  const tooLarge = requestSize(context, entry).tokens > wanted * SETTLED_SHARE
  const compacted = tooLarge && (await compact(context, entry, window, wanted))
  if (!cleared && !compacted) return false
  await context.run.recorder.flush()
  context.deps.onPoint?.('context-edited')
  return true
}

function clear(context: AgentContext, entry: CatalogueEntry, window: number): boolean {
  const { conversation } = context
  const { rate } = requestSize(context, entry)
  const least = Math.min(LEAST_CLEARED_TOKENS, window * LEAST_CLEARED_SHARE)
  const plan = planClearing(editable(context), keptTokens(context, window) / rate, least / rate)
  if (!plan) return false
  const { keep, steps } = plan
  const tokens = Math.ceil(plan.characters * rate)
  conversation.edit(
    { edit: 'cleared', keep },
    { type: 'context_cleared', steps, tokens, keep, model: entry.name, window },
  )
  return true
}

async function compact(context: AgentContext, entry: CatalogueEntry, window: number, wanted: number): Promise<boolean> {
  const messages = editable(context)
  const { tokens, rate } = requestSize(context, entry)
  const plan = planCompaction(messages, keptTokens(context, window) / rate, wanted / 2 / rate)
  if (!plan) return false
  const excess = tokens + summaryTokens(window) - window * (1 - MARGIN)
  const room = countCharacters(messages) - excess / rate
  const turn = await summarize(context, entry, messages, window, room)
  context.deps.onPoint?.('summarized')
  record(context, entry, plan, { tokens, rate, window }, turn)
  return true
}

type Summary = Awaited<ReturnType<typeof summarize>>

function record(
  { conversation, run: { recorder } }: AgentContext,
  { name: model }: CatalogueEntry,
  { keep, steps }: Plan,
  { tokens, rate, window }: { readonly tokens: number; readonly rate: number; readonly window: number },
  turn: Summary,
): void {
  const summary = turn?.message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const edit: ContextEdit = { edit: 'compacted', keep, window, ...(summary !== undefined && { summary }) }
  const freed = conversation.characters() - countCharacters(conversation.preview(edit))
  const event = {
    type: 'context_compacted',
    throughStep: steps.reduce((last, step) => Math.max(last, step), 0),
    tokensBefore: tokens,
    tokensAfter: Math.max(0, Math.ceil(tokens - freed * rate)),
    keep,
    model,
    window,
    ...(!turn && { dropped: true as const }),
  } as const
  if (!turn) recorder.append({ type: 'warning', ...DROPPED })
  conversation.edit(edit, event, turn)
}

const DROPPED = {
  code: 'context_dropped',
  message:
    'The conversation no longer fit the model’s context window and could not be summarized, so the model continued without its older messages. The trace has all of them.',
}

/** The messages that are stored: those that Errand has only just asked stay as they are. */
function editable({ conversation }: AgentContext) {
  const messages = conversation.messages()
  return messages.slice(0, messages.length - conversation.unstored())
}

function keptTokens({ deps, run: { spec } }: AgentContext, window: number): number {
  const { keepTokens = deps.limits.context.keepTokens.default } = spec.policy.context ?? {}
  return Math.min(keepTokens, window * KEPT_SHARE)
}
