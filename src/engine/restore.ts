/**
 * Rebuilds a run's conversation from what is stored, so that any worker can go on with it. Pure.
 *
 * Behind each turn (`atSeq`) stand the tool calls it asked for, in order, each with its result as far as the run came.
 */
import type { RunEvent, Stage, StoredEvent } from '../domain/event.ts'
import { decodeEvent } from '../domain/event.ts'
import { type AssistantPart, type MediaPart, type Message, toolCalls, userText, withMedia } from '../domain/message.ts'
import type { Turn } from '../store/turns.ts'

type ToolCallPart = Extract<AssistantPart, { type: 'tool_call' }>

/** A tool call that the last turn asked for and that has no result yet. */
export interface OpenCall {
  readonly call: ToolCallPart
  /** The step under which it was begun; undefined where it was not begun. */
  readonly step: number | undefined
  /** The sandbox that it may have begun in is gone: another was made behind its intent, in which nobody knows its key. */
  readonly outlived: boolean
  /** How far an approval came: asked for, or decided. Undefined: none was asked for. */
  readonly approval?: 'asked' | 'approved' | Denied
}

export interface Denied {
  readonly reason: string | undefined
}

/**
 * What an earlier worker left of the sandbox. `none`: the log knows of none. `unfinished`: it was being made, so files may
 * be missing. `ready`: it was made; whether it still lives is the sandbox host's to say. Only then anything ran in it.
 */
export type Inheritance = 'none' | 'unfinished' | 'ready'

export interface Restored {
  readonly sandbox: Inheritance
  /** No sandbox of this run was ever ready: what was to run in one never began. */
  readonly neverReady: boolean
  /** The turns and tool results, behind the instruction. */
  readonly messages: readonly Message[]
  readonly openCalls: readonly OpenCall[]
  /** The last turn, where it asked for no tool: it ended the answer, or was to be sent back to the model. */
  readonly closingTurn: Turn | undefined
  readonly lastStep: number
  /** What the log said last of where the run is. */
  readonly stage: Stage
  readonly finishedToolCalls: number
  /** Answer text was shown in a turn that is stored. */
  readonly answerStarted: boolean
  /** Answer text was shown by a model call that never came to its end: the answer must not start over. */
  readonly answerBroken: boolean
}

export const NOTHING_RESTORED: Restored = {
  sandbox: 'none',
  neverReady: true,
  messages: [],
  openCalls: [],
  closingTurn: undefined,
  lastStep: 0,
  stage: 'queued',
  finishedToolCalls: 0,
  answerStarted: false,
  answerBroken: false,
}

/** `shown`: what results showed beside their text; an empty list where it is gone. */
export function restore(
  turns: readonly Turn[],
  stored: readonly StoredEvent[],
  shown: ReadonlyMap<number, readonly MediaPart[]> = new Map(),
): Restored {
  const events = stored.map((event) => ({ seq: event.seq, event: decodeEvent(event) }))
  const { lastReadyAt, ...inherited } = inheritance(events.map(({ event }) => event))
  const messages: Message[] = []
  const openCalls: OpenCall[] = []
  for (const [i, turn] of turns.entries()) {
    const until = turns[i + 1]?.atSeq ?? Number.POSITIVE_INFINITY
    const steps = events.filter(({ seq }) => seq > turn.atSeq && seq <= until).map(({ event }) => event)
    messages.push(turn.message)
    const asked = askedTools(turn)
    // An answer with another turn behind it was sent back to the model.
    if (asked.length === 0 && i < turns.length - 1) messages.push(correction('it has the wrong form'))
    const calls = pairCalls(asked, steps)
    for (const { call, step, result } of calls) {
      if (result === undefined) {
        const begunAt = events.findIndex(({ event }) => event.type === 'tool_call' && event.step === step)
        openCalls.push({ call, step, outlived: begunAt < lastReadyAt, approval: approvalOf(step, steps) })
      } else {
        const message = { role: 'tool', callId: call.callId, name: call.name, output: result.output } as const
        const media = shown.get(result.step)
        messages.push(media?.length === 0 ? withMedia(message, []) : { ...message, ...(media && { media }) })
      }
    }
  }
  const last = turns.at(-1)
  const boundary = last?.atSeq ?? 0
  const spoken = events.filter(({ event }) => event.type === 'partial_output')
  return {
    ...inherited,
    messages,
    openCalls,
    closingTurn: last && askedTools(last).length === 0 ? last : undefined,
    lastStep: events.reduce((last, { event }) => ('step' in event ? Math.max(last, event.step) : last), 0),
    stage: events.reduce<Stage>((stage, { event }) => (event.type === 'stage' ? event.stage : stage), 'queued'),
    // With those that the provider ran.
    finishedToolCalls: events.filter(({ event }) => event.type === 'tool_result').length,
    answerStarted: spoken.some(({ seq }) => seq <= boundary),
    answerBroken: spoken.some(({ seq }) => seq > boundary),
  }
}

/**
 * A sandbox is only made within a tool call, and `working` follows when it is ready; a take-over says neither.
 * `lastReadyAt`: where the log says that the last one was, if others were before it; else before its beginning.
 */
function inheritance(events: readonly RunEvent[]) {
  const firstCall = events.findIndex((event) => event.type === 'tool_call')
  const stages = events.flatMap((event, at) =>
    firstCall >= 0 && at > firstCall && event.type === 'stage' ? [{ at, stage: event.stage }] : [],
  )
  const made = stages.flatMap(({ stage }, i) => (stage === 'provisioning' ? [stages[i + 1]] : []))
  const ready = made.flatMap((next) => (next?.stage === 'working' ? [next.at] : []))
  const sandbox: Inheritance = made.length === 0 ? 'none' : made.at(-1)?.stage === 'working' ? 'ready' : 'unfinished'
  return { sandbox, neverReady: ready.length === 0, lastReadyAt: ready.length > 1 ? ready.at(-1)! : -1 }
}

/** What a turn asked for. One that was cut off at its length asked for nothing: its calls may be cut off too. */
export function askedTools({ message, finish }: Pick<Turn, 'message' | 'finish'>): ToolCallPart[] {
  return finish === 'length' ? [] : toolCalls(message)
}

/** What a model is told whose answer does not fit the response format. */
export function correction(problem: string): Message {
  return userText(
    `That answer does not match the required JSON Schema: ${problem}\nAnswer again with the JSON value alone.`,
  )
}

function approvalOf(step: number | undefined, steps: readonly RunEvent[]): OpenCall['approval'] {
  const decided = steps.find((event) => event.type === 'approval_decided' && event.step === step)
  if (decided?.type === 'approval_decided') return decided.approve ? 'approved' : { reason: decided.reason }
  return steps.some((event) => event.type === 'approval_required' && event.step === step) ? 'asked' : undefined
}

function pairCalls(calls: readonly ToolCallPart[], steps: readonly RunEvent[]) {
  const begun = steps.filter((event) => event.type === 'tool_call')
  const results = steps.filter((event) => event.type === 'tool_result')
  return calls.map((call, i) => ({ call, step: begun[i]?.step, result: results[i] }))
}
