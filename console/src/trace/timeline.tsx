/** The timeline of a run: one row per span, and a bar with the totals. */
import { useQuery } from '@tanstack/react-query'
import type { Interaction } from '../api/types.gen.js'
import { eventsQuery } from '../server/queries.ts'
import { cx } from '../ui/cx.ts'
import { duration } from '../ui/format.ts'
import { Failure, Loading, Skeleton } from '../ui/states.tsx'
import { type SpanKind, spansOf, totals } from './spans.ts'

const KINDS: Readonly<Record<SpanKind, { readonly name: string; readonly color: string }>> = {
  queue: { name: 'Queue', color: 'bg-line-strong' },
  sandbox: { name: 'Sandbox', color: 'bg-amber' },
  model: { name: 'Model', color: 'bg-accent' },
  tool: { name: 'Tools', color: 'bg-blue' },
  person: { name: 'Approval', color: 'bg-red' },
  settling: { name: 'Finishing', color: 'bg-green' },
}

/** The totals as one bar. */
export function TimeBar({ interaction }: { readonly interaction: Interaction }) {
  const { data: events } = useQuery(eventsQuery(interaction.id))
  if (!events) return <Skeleton className="mt-3 h-10" />
  const parts = totals(spansOf(interaction, events))
  const all = parts.reduce((sum, [, ms]) => sum + ms, 0)
  return (
    <div className="mt-3 min-h-10">
      <div aria-hidden="true" className="flex h-2 gap-px overflow-hidden rounded-full bg-hover">
        {parts.map(([kind, ms]) => (
          <span key={kind} className={KINDS[kind].color} style={{ width: `${(ms / all) * 100}%` }} />
        ))}
      </div>
      <ul aria-label="Time breakdown" className="mt-2 flex flex-wrap gap-x-4 text-small text-soft tabular-nums">
        {parts.map(([kind, ms]) => (
          <li key={kind} className="flex items-center gap-1.5">
            <span className={cx('size-2 rounded-sm', KINDS[kind].color)} />
            {KINDS[kind].name} <span className="text-text">{duration(ms)}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}

export function Timeline({ interaction }: { readonly interaction: Interaction }) {
  const events = useQuery(eventsQuery(interaction.id))
  if (events.error) return <Failure error={events.error} retry={() => events.refetch()} />
  if (!events.data) return <Loading />
  const spans = spansOf(interaction, events.data)
  const end = Math.max(1, spans.at(-1)?.to ?? 1)
  return (
    <div className="overflow-hidden rounded-xl border bg-card">
      <div
        aria-hidden="true"
        className="grid grid-cols-[8rem_1fr_4.5rem] gap-3 px-4 py-2 text-small text-faint tabular-nums sm:grid-cols-[17rem_1fr_5rem]"
      >
        <span>Span</span>
        <span className="flex justify-between">
          <span>0</span>
          <span className="max-sm:hidden">{duration(end / 2)}</span>
          <span>{duration(end)}</span>
        </span>
        <span className="text-right">Duration</span>
      </div>
      <ol aria-label="Timeline">
        {spans.map(({ kind, name, from, to }) => (
          <li
            key={`${kind} ${from}`}
            className="grid grid-cols-[8rem_1fr_4.5rem] items-center gap-3 border-t px-4 py-1.5 hover:bg-hover sm:grid-cols-[17rem_1fr_5rem]"
          >
            <span className="flex min-w-0 items-center gap-2">
              <span className={cx('size-2 shrink-0 rounded-sm', KINDS[kind].color)} />
              <span className="truncate">{name}</span>
            </span>
            <span className="relative h-4">
              <span
                className={cx('absolute inset-y-0.5 min-w-0.5 rounded-sm', KINDS[kind].color)}
                style={{ left: `${Math.min(99.5, (from / end) * 100)}%`, width: `${((to - from) / end) * 100}%` }}
              />
            </span>
            <span className="text-right text-soft tabular-nums">{duration(to - from)}</span>
          </li>
        ))}
      </ol>
    </div>
  )
}
