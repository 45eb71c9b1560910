/** The timeline of a run: its events as consecutive spans without gaps. */
import type { Interaction, StreamEvent, TimedEvent } from '../api/types.gen.js'

export type SpanKind = 'queue' | 'sandbox' | 'model' | 'tool' | 'person' | 'settling'

export interface Span {
  readonly kind: SpanKind
  readonly name: string
  /** Milliseconds since the run was accepted. */
  readonly from: number
  readonly to: number
}

const STAGES: Readonly<Record<string, readonly [SpanKind, string]>> = {
  queued: ['queue', 'Queued'],
  provisioning: ['sandbox', 'Preparing the sandbox'],
  working: ['model', 'Model'],
  settling: ['settling', 'Collecting files, ending the sandbox'],
}

type EventName = StreamEvent['event']
type EventData<Name extends EventName> = Extract<StreamEvent, { event: Name }>['data']

/** The spans of a run, up to its newest event if it has not ended. */
export function spansOf(interaction: Interaction, events: readonly TimedEvent[]): readonly Span[] {
  const start = Date.parse(interaction.createTime)
  const spans: Span[] = []
  let open: Omit<Span, 'to'> = { kind: 'queue', name: 'Queued', from: 0 }
  /** Names of the calls without a result, by id. Calls of one reply may run at the same time, and are one span. */
  const running = new Map<string | undefined, string>()
  let waiting = 0
  const tools = () => [...new Set(running.values())].join(', ')
  const turn = (kind: SpanKind, name: string, at: number) => {
    if (at > open.from) spans.push({ ...open, to: at })
    open = { kind, name, from: at }
  }
  const answering = (at: number) => {
    if (open.kind === 'queue') turn('model', 'Model', at)
  }
  const handlers: { readonly [Name in EventName]?: (at: number, data: EventData<Name>) => void } = {
    stage(at, { stage }) {
      const next = STAGES[stage]
      // A tool call continues while its sandbox is created.
      if (next && (open.kind !== 'tool' || next[0] === 'settling')) turn(...next, at)
    },
    tool_call(at, { name, callId, via }) {
      if (via !== undefined) return
      running.set(callId, name)
      turn('tool', tools(), at)
    },
    approval_required(at) {
      waiting++
      turn('person', 'Waiting for approval', at)
    },
    approval_decided(at) {
      if (--waiting === 0) turn('tool', tools(), at)
    },
    tool_result(at, { callId, via }) {
      if (via !== undefined) return
      running.delete(callId)
      if (running.size > 0) turn('tool', tools(), at)
      else turn('model', 'Model', at)
    },
    reasoning_started: answering,
    reasoning_delta: answering,
    partial_output: answering,
    completed: (at) => turn(open.kind, open.name, at),
  }
  for (const { event, time, data } of events) {
    const at = Math.max(open.from, Date.parse(time) - start)
    if (Object.hasOwn(handlers, event)) (handlers[event as EventName] as (at: number, data: unknown) => void)(at, data)
  }
  const last = events.at(-1)
  if (last && last.event !== 'completed') turn(open.kind, open.name, Date.parse(last.time) - start)
  return spans
}

/** Total duration of each kind that occurs. */
export function totals(spans: readonly Span[]): readonly (readonly [SpanKind, number])[] {
  const sums = new Map<SpanKind, number>()
  for (const { kind, from, to } of spans) sums.set(kind, (sums.get(kind) ?? 0) + to - from)
  return [...sums]
}
