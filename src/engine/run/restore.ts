/**
 * Rebuilds a run's conversation from its stored turns and events, so that any worker can continue it. Pure.
 *
 * After each turn (`atSeq`), the log has the turn's tool calls in order, and the results of those that finished in any order.
 * Old logs have no call ids: there each result follows its call.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ContextEdit, Entry } from '../../domain/context.ts'
import type { Notice, RunEvent, Stage, StoredEvent } from '../../domain/event.ts'
import { decodeEvent } from '../../domain/event.ts'
import { shownToModel } from '../../domain/long-result.ts'
import {
  answerText,
  isSilent,
  type MediaPart,
  type ToolCallPart,
  type ToolMessage,
  TURN_BREAK,
  toolCalls,
  type UserMessage,
} from '../../domain/message.ts'
import { LAST_TURN, REMINDER } from '../../domain/prompts.ts'
import { withoutMedia } from '../../domain/view.ts'
import type { Turn } from '../../store/turns.ts'
import { callIdsOf } from './call-ids.ts'

type ShownMedia = ReadonlyMap<number, readonly MediaPart[]>

/** A tool call of the last turn. */
export interface BatchCall {
  readonly call: ToolCallPart
  /** Its id in the log. */
  readonly callId: string
  /** The step of its intent in the log; undefined if it has none. */
  readonly step: number | undefined
  /** The sandbox in which it may have started is gone, and the newer sandbox does not know its key. */
  readonly outlived: boolean
  /** State of its approval. Undefined: none was requested. */
  readonly approval?: 'asked' | 'approved' | Denied
  /** An earlier worker has finished it. */
  readonly result?: ToolMessage
}

/** The tool calls of the last turn, in order. At least one has no result. */
export interface OpenBatch {
  readonly calls: readonly BatchCall[]
  readonly refusal: Refusal | undefined
}

/** Why a call is not run: the output limit cut it off, or it came in the last turn of a run. */
export type Refusal = 'truncated' | 'declined'

/** A call by code: its id in the log, and the step of the call that ran the code. */
export interface CodeCallEvent {
  readonly callId: string
  readonly via: number
}

export interface Denied {
  readonly reason: string | undefined
}

/**
 * The sandbox that an earlier worker left. `none`: the log has none. `unfinished`: its creation was interrupted, so files may
 * be missing. `ready`: it was created; the sandbox host knows whether it still exists. Code only ran in a `ready` one.
 */
export type RestoredSandboxState = 'none' | 'unfinished' | 'ready'

export interface Restored {
  readonly sandbox: RestoredSandboxState
  /** No sandbox of this run was ever ready, so no code ran in one. */
  readonly neverReady: boolean
  /** The turns and tool results after the instruction, and the edits of the model's view of them, without the open batch. */
  readonly entries: readonly Entry[]
  /** Context windows by model, in tokens, as the edits recorded them. */
  readonly windows: ReadonlyMap<string, number>
  readonly openBatch: OpenBatch | undefined
  /** Calls that code in the sandbox made and that have no result. They are not part of the conversation. */
  readonly openCodeCalls: readonly CodeCallEvent[]
  /** The last turn, if it is complete and calls no tool: it ended the answer, or needs a correction. */
  readonly closingTurn: Turn | undefined
  readonly lastStep: number
  readonly lastBatch: number
  /** The last stage in the log. */
  readonly stage: Stage
  readonly finishedToolCalls: number
  /** Answer text was shown in a turn that is stored. */
  readonly answerStarted: boolean
  /** Shown answer text of a model call that is not stored, because the server died during it. */
  readonly unfinished: string
  /** Joined answer text of the last, broken turns. The next turn continues it. */
  readonly continues: string
  /** Messages of all warnings in the log. */
  readonly warnings: readonly string[]
  readonly notices: readonly Notice[]
  /** Those of the notices whose message is not stored with a turn. */
  readonly unansweredNotices: readonly Notice[]
  /** The closing turn is an empty reply. */
  readonly emptyReply: boolean
  /** The model was reminded after an empty reply. */
  readonly reminded: boolean
}

export const NOTHING_RESTORED: Restored = {
  sandbox: 'none',
  neverReady: true,
  entries: [],
  windows: new Map(),
  openBatch: undefined,
  openCodeCalls: [],
  closingTurn: undefined,
  lastStep: 0,
  lastBatch: 0,
  stage: 'queued',
  finishedToolCalls: 0,
  answerStarted: false,
  unfinished: '',
  continues: '',
  warnings: [],
  notices: [],
  unansweredNotices: [],
  emptyReply: false,
  reminded: false,
}

/** `stored`: the run's model calls. `shown`: media by the step of their result; an empty list if they are gone. */
export function restore(stored: readonly Turn[], log: readonly StoredEvent[], shown: ShownMedia = new Map()): Restored {
  // Failed calls and summaries are not part of the conversation.
  const turns = stored.filter(({ finish }) => finish !== 'failed' && finish !== 'summary')
  const events = log.map((event) => ({ seq: event.seq, event: decodeEvent(event) }))
  const { lastReadyAt, ...sandbox } = restoreSandbox(events.map(({ event }) => event))
  const firstTurnAt = turns[0]?.atSeq ?? Number.POSITIVE_INFINITY
  const entries: Entry[] = events.filter(({ seq }) => seq <= firstTurnAt).flatMap((logged) => editsOf(logged, stored))
  let openBatch: OpenBatch | undefined
  for (const [i, turn] of turns.entries()) {
    const until = turns[i + 1]?.atSeq ?? Number.POSITIVE_INFINITY
    const following = events.filter(({ seq }) => seq > turn.atSeq && seq <= until)
    const steps = following.flatMap(({ event }) => (isByCode(event) ? [] : [event]))
    const { input, output } = turn.tokens
    entries.push(...turn.asked, ...(isSilent(turn.message) ? [] : [turn.message]), {
      edit: 'measured',
      tokens: input + output,
    })
    const paired = pairCalls(toolCalls(turn.message), steps, shown)
    const results = paired.flatMap(({ result }) => result ?? [])
    if (results.length === paired.length) for (const result of results) entries.push(result)
    else {
      // Only the last turn can have calls without a result.
      const calls = paired.map((call) => {
        const begunAt = events.findIndex(({ event }) => event.type === 'tool_call' && event.step === call.step)
        return { ...call, outlived: begunAt < lastReadyAt, approval: approvalOf(call.step, steps) }
      })
      openBatch = { calls, refusal: refusalOf(turn) }
    }
    // Edits are made between the results of a turn and the next request.
    entries.push(...following.flatMap((logged) => editsOf(logged, stored)))
  }
  const last = turns.at(-1)
  const boundary = stored.at(-1)?.atSeq ?? 0
  const spoken = events.flatMap(({ seq, event }) =>
    event.type === 'partial_output' ? [{ seq, text: event.text }] : [],
  )
  const answerStarted = spoken.some(({ seq }) => seq <= boundary)
  const continues = continued(turns)
  const unstored = spoken.flatMap(({ seq, text }) => (seq > boundary ? [text] : [])).join('')
  const noticed = events.flatMap(({ seq, event }) => {
    return event.type === 'notice' ? [{ seq, notice: { kind: event.kind, left: event.left } }] : []
  })
  return {
    ...sandbox,
    entries,
    windows: new Map(events.flatMap(({ event }) => windowOf(event))),
    openBatch,
    openCodeCalls: codeCallsWithoutResult(events.map(({ event }) => event)),
    closingTurn: last && last.finish !== 'broken' && toolCalls(last.message).length === 0 ? last : undefined,
    lastStep: events.reduce((last, { event }) => ('step' in event ? Math.max(last, event.step) : last), 0),
    lastBatch: events.reduce((last, { event }) => ('batch' in event ? Math.max(last, event.batch ?? 0) : last), 0),
    stage: events.reduce<Stage>((stage, { event }) => (event.type === 'stage' ? event.stage : stage), 'queued'),
    // Including the calls that the provider ran.
    finishedToolCalls: events.filter(({ event }) => event.type === 'tool_result').length,
    answerStarted,
    // Errand adds the blank line before a turn of the answer; the model did not send it.
    unfinished: answerStarted && continues === '' ? unstored.replace(TURN_BREAK, '') : unstored,
    continues,
    warnings: events.flatMap(({ event }) => (event.type === 'warning' ? [event.message] : [])),
    notices: noticed.map(({ notice }) => notice),
    unansweredNotices: noticed.flatMap(({ seq, notice }) => (seq > (last?.atSeq ?? 0) ? [notice] : [])),
    emptyReply:
      last !== undefined && last.finish === 'stop' && isSilent(last.message) && turns.at(-2)?.finish !== 'broken',
    reminded: turns.some((turn) => hasAsked(turn, REMINDER)),
  }
}

function hasAsked({ asked }: Pick<Turn, 'asked'>, message: UserMessage): boolean {
  return asked.some((each) => isDeepStrictEqual(each, message))
}

interface Logged {
  readonly seq: number
  readonly event: RunEvent
}

/** The edit that an event records. Its summary is the turn that was written with it. */
function editsOf({ seq, event }: Logged, stored: readonly Turn[]): ContextEdit[] {
  if (event.type === 'context_cleared')
    return [event.keep === undefined ? { edit: 'media_refused' } : { edit: 'cleared', keep: event.keep }]
  if (event.type !== 'context_compacted') return []
  const { keep, window } = event
  const turn = stored.find(({ finish, atSeq }) => finish === 'summary' && atSeq === seq)
  return [{ edit: 'compacted', keep, window, ...(turn && { summary: answerText(turn.message) }) }]
}

function windowOf(event: RunEvent): [string, number][] {
  if (event.type !== 'context_cleared' && event.type !== 'context_compacted') return []
  return event.model === undefined || event.window === undefined ? [] : [[event.model, event.window]]
}

/** Why the calls of a turn are not run; undefined if they are. */
function refusalOf({ finish, asked }: Pick<Turn, 'finish' | 'asked'>): Refusal | undefined {
  if (finish === 'length') return 'truncated'
  return hasAsked({ asked }, LAST_TURN) ? 'declined' : undefined
}

/** Code in the sandbox made the call. Its result went to the code, not to the model. */
function isByCode(event: RunEvent): boolean {
  return 'via' in event && event.via !== undefined
}

function codeCallsWithoutResult(events: readonly RunEvent[]): readonly CodeCallEvent[] {
  const open = new Map<string, CodeCallEvent>()
  for (const event of events) {
    if (event.type !== 'tool_call' && event.type !== 'tool_result') continue
    const { callId, via } = event
    if (callId === undefined || via === undefined) continue
    if (event.type === 'tool_call') open.set(callId, { callId, via })
    else open.delete(callId)
  }
  return [...open.values()]
}

/** The text of the broken turns at the end. */
function continued(turns: readonly Turn[]): string {
  const from = turns.findLastIndex(({ finish }) => finish !== 'broken') + 1
  return turns
    .slice(from)
    .map(({ message }) => answerText(message))
    .join('')
}

/**
 * Reads the sandbox's state from the stages: a tool call creates a sandbox (`provisioning`), and `working` follows when it is
 * ready. Resuming a sandbox logs neither. `lastReadyAt`: index of the event at which the last sandbox was ready, if it
 * replaced another one; else -1.
 */
function restoreSandbox(events: readonly RunEvent[]) {
  const firstCall = events.findIndex((event) => event.type === 'tool_call')
  const stages = events.flatMap((event, at) =>
    firstCall >= 0 && at > firstCall && event.type === 'stage' ? [{ at, stage: event.stage }] : [],
  )
  const made = stages.flatMap(({ stage }, i) => (stage === 'provisioning' ? [stages[i + 1]] : []))
  const ready = made.flatMap((next) => (next?.stage === 'working' ? [next.at] : []))
  const sandbox: RestoredSandboxState =
    made.length === 0 ? 'none' : made.at(-1)?.stage === 'working' ? 'ready' : 'unfinished'
  return { sandbox, neverReady: ready.length === 0, lastReadyAt: ready.length > 1 ? ready.at(-1)! : -1 }
}

function approvalOf(step: number | undefined, steps: readonly RunEvent[]): BatchCall['approval'] {
  const decided = steps.find((event) => event.type === 'approval_decided' && event.step === step)
  if (decided?.type === 'approval_decided') return decided.approve ? 'approved' : { reason: decided.reason }
  return steps.some((event) => event.type === 'approval_required' && event.step === step) ? 'asked' : undefined
}

/** Pairs the calls of a turn with their intents, which are in order, and with their results, by id or else in order. */
function pairCalls(calls: readonly ToolCallPart[], steps: readonly RunEvent[], shown: ShownMedia) {
  const begun = steps.filter((event) => event.type === 'tool_call')
  const results = steps.filter((event) => event.type === 'tool_result')
  // The first one: a later call that the provider ran may have the same id.
  const byId = new Map(results.toReversed().map((result) => [result.callId, result]))
  const ids = callIdsOf(calls)
  return calls.map((call, i) => {
    const intent = begun[i]
    const callId = intent?.callId ?? ids[i]!
    const result = intent?.callId === undefined ? results[i] : byId.get(callId)
    return { call, callId, step: intent?.step, ...(result && { result: resultMessage(call, result, shown) }) }
  })
}

function resultMessage(
  { callId, name }: ToolCallPart,
  result: Extract<RunEvent, { type: 'tool_result' }>,
  shown: ShownMedia,
): ToolMessage {
  const { step, full } = result
  const output = shownToModel(result)
  const message = { role: 'tool', callId, name, output, step, ...(full && { file: full.path }) } as const
  const media = shown.get(step)
  return media?.length === 0 ? withoutMedia(message) : { ...message, ...(media && { media }) }
}
