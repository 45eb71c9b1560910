/** Interactions as rows: what was asked, how it went, how long it took. One row is one link. */
import { Link } from '@tanstack/react-router'
import type { InteractionSummary } from '../api/types.gen.js'
import { Status } from '../ui/badge.tsx'
import { cx } from '../ui/cx.ts'
import { ago, cost, count, duration, moment } from '../ui/format.ts'

export const ROW_HEIGHT = 44

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

const COLUMNS =
  'grid items-center gap-x-3 px-4 grid-cols-[7rem_minmax(0,1fr)_auto] md:grid-cols-[7rem_minmax(0,1fr)_7.5rem_5rem_4rem_4rem_6rem]'

export function RunRowHead() {
  return (
    <div aria-hidden="true" className={cx(COLUMNS, 'h-8 text-small text-faint')}>
      <span>Status</span>
      <span>Instruction</span>
      <span className="hidden md:block">Agent or model</span>
      <span className="hidden text-right md:block">Time</span>
      <span className="hidden text-right md:block">Tokens</span>
      <span className="hidden text-right md:block">Cost</span>
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
      className={cx(COLUMNS, 'h-11 hover:bg-hover focus-visible:-outline-offset-2')}
    >
      <Status status={run.status} stage={run.stage} />
      <span className="truncate">{run.instruction}</span>
      <span className="hidden truncate text-soft md:block">{run.agentId ?? run.model}</span>
      <span className="hidden text-right text-soft tabular-nums md:block">{duration(usage.duration_ms)}</span>
      <span className="hidden text-right text-soft tabular-nums md:block">
        {count(usage.total_tokens ?? usage.input_tokens + usage.output_tokens)}
      </span>
      <span className="hidden text-right text-soft tabular-nums md:block">{cost(usage.cost?.amount)}</span>
      <time
        dateTime={run.createTime}
        title={moment(run.createTime)}
        className="text-right text-small text-faint whitespace-nowrap"
      >
        {ago(run.createTime)}
      </time>
    </Link>
  )
}
