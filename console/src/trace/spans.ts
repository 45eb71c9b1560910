/** Where a run's time went: its log cut into spans that follow each other without a gap. */
import type { Interaction, TimedEvent } from '../api/types.gen.js'

export type SpanKind = 'queue' | 'sandbox' | 'model' | 'tool' | 'person' | 'settling'

export interface Span {
  readonly kind: SpanKind
  readonly name: string
  /** Milliseconds since the run was accepted. */
  readonly from: number
  readonly to: number
}

const STAGES: Readonly<Record<string, readonly [SpanKind, string]>> = {
  queued: ['queue', 'Waiting for a place'],
  provisioning: ['sandbox', 'Preparing the sandbox'],
  working: ['model', 'Model'],
  settling: ['settling', 'Collecting files, ending the sandbox'],
}

/** Of a run that still goes on: until its newest event. */
export function spansOf(interaction: Interaction, events: readonly TimedEvent[]): readonly Span[] {
  const start = Date.parse(interaction.createTime)
  const spans: Span[] = []
  let open: Omit<Span, 'to'> = { kind: 'queue', name: 'Waiting for a place', from: 0 }
  let tool = ''
  const turn = (kind: SpanKind, name: string, at: number) => {
    if (at > open.from) spans.push({ ...open, to: at })
    open = { kind, name, from: at }
  }
  for (const { event, time, data } of events) {
    const at = Math.max(open.from, Date.parse(time) - start)
    const stage = event === 'stage' ? STAGES[data.stage as string] : undefined
    // A tool call goes on while its sandbox is made.
    if (stage && !(open.kind === 'tool' && stage[0] !== 'settling')) turn(...stage, at)
    else if (event === 'tool_call') {
      tool = data.name as string
      turn('tool', tool, at)
    } else if (event === 'approval_required') turn('person', 'Waiting for a person', at)
    else if (event === 'approval_decided') turn('tool', tool, at)
    else if (event === 'tool_result') turn('model', 'Model', at)
    else if (open.kind === 'queue' && /^(reasoning|partial)/.test(event)) turn('model', 'Model', at)
    else if (event === 'completed') turn(open.kind, open.name, at)
  }
  const last = events.at(-1)
  if (last && last.event !== 'completed') turn(open.kind, open.name, Date.parse(last.time) - start)
  return spans
}

/** How long each kind took in all, those that took any. */
export function totals(spans: readonly Span[]): readonly (readonly [SpanKind, number])[] {
  const sums = new Map<SpanKind, number>()
  for (const { kind, from, to } of spans) sums.set(kind, (sums.get(kind) ?? 0) + to - from)
  return [...sums]
}
