/** The usage by agent, model, key, project or day, the row with the most runs first. */
import type { UsageReport, UsageRow } from '../server/console-api.ts'
import { cost, count, duration } from '../ui/format.ts'
import { Scroller } from '../ui/scroller.tsx'
import { failedPart } from './plots.tsx'
import { GROUPS, type Group } from './usage-query.ts'
import { keyLabel } from './use-filter-options.ts'

interface BreakdownTableProps {
  readonly usage: UsageReport
  readonly group: Group
  readonly agentName: (id: string) => string
}

export function BreakdownTable({ usage, group, agentName }: BreakdownTableProps) {
  const name: Readonly<Record<Group, (row: UsageRow) => string>> = {
    day: (row) => row.day ?? '',
    project: (row) => row.projectName ?? row.projectId ?? '',
    agent: (row) => (row.agentId ? agentName(row.agentId) : 'No agent'),
    model: (row) => row.model ?? 'Unknown',
    key: keyLabel,
  }
  const rows = usage.rows.toSorted((a, b) => (group === 'day' ? (a.day! < b.day! ? 1 : -1) : b.runs - a.runs))
  const most = Math.max(1, ...rows.map(({ runs }) => runs))
  return (
    <Scroller label={`By ${GROUPS[group].toLowerCase()}`} className="overflow-x-auto">
      <table className="w-full min-w-[44rem] tabular-nums">
        <thead>
          <tr className="border-t text-left text-small text-faint [&>th]:px-4 [&>th]:py-2 [&>th]:font-normal [&>th:not(:first-child)]:text-right">
            <th>{GROUPS[group]}</th>
            <th>Runs</th>
            <th>Failed</th>
            <th>Cancelled</th>
            <th>Input tokens</th>
            <th>Output tokens</th>
            <th>Cost</th>
            <th>p50</th>
            <th>p95</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={row.day ?? row.projectId ?? row.keyId ?? row.agentId ?? row.model ?? ''}
              className="border-t [&>td]:px-4 [&>td]:py-2 [&>td]:text-right [&>td]:text-soft [&>th]:px-4 [&>th]:py-2"
            >
              <th scope="row" className="max-w-56 text-left font-normal">
                <span className="block truncate">{name[group](row)}</span>
                <span
                  aria-hidden="true"
                  className="mt-1 block h-1 rounded-full bg-accent"
                  style={{ width: `${(row.runs / most) * 100}%` }}
                />
              </th>
              <td className="!text-text">{count(row.runs)}</td>
              <td className="whitespace-nowrap">
                {count(row.failed)} {row.failed > 0 && <span className="text-faint">· {failedPart(row)}</span>}
              </td>
              <td>{count(row.cancelled)}</td>
              <td>{count(row.inputTokens)}</td>
              <td>{count(row.outputTokens)}</td>
              <td>{cost(row.cost.amount, row.cost.currency)}</td>
              <td>{duration(row.latencyMs.p50 ?? undefined)}</td>
              <td>{duration(row.latencyMs.p95 ?? undefined)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroller>
  )
}
