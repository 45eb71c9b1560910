/** The charts of runs, tokens, cost and duration by day. */
import type { UsageFigures, UsageReport } from '../server/console-api.ts'
import { cost, count, duration } from '../ui/format.ts'
import { Skeleton } from '../ui/states.tsx'
import { Plot } from './plot.tsx'

interface PlotsProps {
  readonly usage: UsageReport | undefined
  readonly days: readonly string[]
}

export function Plots({ usage, days }: PlotsProps) {
  if (!usage) {
    return (
      <div role="status" aria-label="Loading" className="grid gap-4 md:grid-cols-2">
        {['runs', 'tokens', 'cost', 'time'].map((name) => (
          <div key={name} className="rounded-xl border bg-card p-4">
            <Skeleton className="h-[16.25rem]" />
          </div>
        ))}
      </div>
    )
  }
  const rows = new Map(usage.rows.map((row) => [row.day, row]))
  const sums = (figure: (row: UsageFigures) => number) =>
    days.map((day) => {
      const row = rows.get(day)
      return row ? figure(row) : 0
    })
  const times = (part: 'p50' | 'p95' | 'p99') => days.map((day) => rows.get(day)?.latencyMs[part] ?? null)
  const { total } = usage
  return (
    <div className="grid gap-4 md:grid-cols-2">
      <Plot
        title="Runs"
        figure={`${count(total.runs)} · ${failedPart(total)} failed`}
        days={days}
        kind="bars"
        format={count}
        series={[
          { name: 'completed', color: 'var(--green)', values: sums((row) => row.runs - row.failed - row.cancelled) },
          { name: 'failed', color: 'var(--red)', values: sums((row) => row.failed) },
          { name: 'cancelled', color: 'var(--faint)', values: sums((row) => row.cancelled) },
        ]}
      />
      <Plot
        title="Tokens"
        figure={count(total.inputTokens + total.outputTokens)}
        days={days}
        kind="bars"
        format={count}
        series={[
          { name: 'input', color: 'var(--blue)', values: sums((row) => row.inputTokens) },
          { name: 'output', color: 'var(--accent)', values: sums((row) => row.outputTokens) },
        ]}
      />
      <Plot
        title="Cost"
        figure={cost(total.cost.amount, total.cost.currency)}
        days={days}
        kind="bars"
        format={(value) => cost(value)}
        series={[
          { name: 'models with a price', color: 'var(--accent)', values: sums((row) => Number(row.cost.amount)) },
        ]}
      />
      <Plot
        title="Run duration"
        figure={total.latencyMs.p50 === null ? '–' : `${duration(total.latencyMs.p50)} median`}
        days={days}
        kind="lines"
        format={duration}
        series={[
          { name: 'p50', color: 'var(--green)', values: times('p50') },
          { name: 'p95', color: 'var(--blue)', values: times('p95') },
          { name: 'p99', color: 'var(--accent)', values: times('p99') },
        ]}
      />
    </div>
  )
}

/** `3.2 %` */
export function failedPart({ runs, failed }: UsageFigures): string {
  const part = runs === 0 ? 0 : (failed / runs) * 100
  return `${part.toFixed(part > 0 && part < 10 ? 1 : 0)} %`
}
