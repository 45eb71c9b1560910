/** Runs as rows: status, instruction, duration, usage. Each row is one link. */
import { Link } from '@tanstack/react-router'
import type { InteractionSummary } from '../api/types.gen.js'
import { Status } from '../ui/badge.tsx'
import { cx } from '../ui/cx.ts'
import { ago, cost, count, duration, moment } from '../ui/format.ts'

/** Height in pixels. Rows have two lines on narrow screens. */
export function rowHeight(): number {
  return matchMedia('(width < 48rem)').matches ? 56 : 44
}

export function RunRows({ runs }: { readonly runs: readonly InteractionSummary[] }) {
  return (
    <ul>
      {runs.map((run) => (
        <li key={run.id} className="border-t">
          <RunRow run={run} />
        </li>
      ))}
    </ul>
  )
}

const COLUMNS = 'items-center gap-x-3 px-4 md:grid-cols-[7rem_minmax(0,1fr)_7.5rem_5rem_4rem_4rem_6rem]'

export function RunRowHead() {
  return (
    <div aria-hidden="true" className={cx(COLUMNS, 'hidden h-8 text-small text-faint md:grid')}>
      <span>Status</span>
      <span>Instruction</span>
      <span>Agent or model</span>
      <span className="text-right">Duration</span>
      <span className="text-right">Tokens</span>
      <span className="text-right">Cost</span>
      <span className="text-right">Started</span>
    </div>
  )
}

export function RunRow({ run }: { readonly run: InteractionSummary }) {
  const { usage } = run
  return (
    <Link
      to="/interactions/$id"
      params={{ id: run.id }}
      className={cx(
        COLUMNS,
        'grid h-14 grid-cols-[minmax(0,1fr)_auto] content-center gap-y-0.5 hover:bg-hover focus-visible:-outline-offset-2 md:h-11',
      )}
    >
      <span className="flex max-md:order-1">
        <Status status={run.status} stage={run.stage} />
      </span>
      <span className="truncate max-md:col-span-2">{run.instruction}</span>
      <span className="hidden truncate text-soft md:block">{run.agentId ?? run.model}</span>
      <span className="hidden text-right text-soft tabular-nums md:block">{duration(usage.duration_ms)}</span>
      <span className="hidden text-right text-soft tabular-nums md:block">
        {count(usage.total_tokens ?? usage.input_tokens + usage.output_tokens)}
      </span>
      <span className="hidden text-right text-soft tabular-nums md:block">{cost(usage.cost?.amount)}</span>
      <time
        dateTime={run.createTime}
        title={moment(run.createTime)}
        className="text-right text-small text-faint whitespace-nowrap max-md:order-2"
      >
        {ago(run.createTime)}
      </time>
    </Link>
  )
}
