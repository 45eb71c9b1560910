/** The page that compares two runs: figures and traces side by side. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { Interaction } from '../api/types.gen.js'
import { runQuery, runsQuery } from '../server/queries.ts'
import { Page } from '../shell/page.tsx'
import { Files } from '../trace/files.tsx'
import { TraceView } from '../trace/trace-view.tsx'
import { useRun } from '../trace/use-run.ts'
import { Status } from '../ui/badge.tsx'
import { cx } from '../ui/cx.ts'
import { Select } from '../ui/field.tsx'
import { ago, cost, count, duration } from '../ui/format.ts'
import { LabelSuffix } from '../ui/label-suffix.ts'
import { Empty, Failure, Loading } from '../ui/states.tsx'

const route = getRouteApi('/compare')

export default function Compare() {
  const { a, b } = route.useSearch()
  const first = useQuery({ ...runQuery(a ?? ''), enabled: a !== undefined })
  const second = useQuery({ ...runQuery(b ?? ''), enabled: b !== undefined })
  return (
    <Page title="Compare" about="Two runs side by side." above={<Link to="/interactions">Runs</Link>}>
      <div className="grid gap-5 lg:grid-cols-2">
        <RunColumn name="a" id={a} interaction={first.data} other={second.data} error={first.error} />
        <RunColumn name="b" id={b} interaction={second.data} other={first.data} error={second.error} />
      </div>
    </Page>
  )
}

interface SideProps {
  readonly name: 'a' | 'b'
  readonly id: string | undefined
  readonly interaction: Interaction | undefined
  readonly other: Interaction | undefined
  readonly error: unknown
}

function RunColumn({ name, id, interaction, other, error }: SideProps) {
  return (
    <section aria-label={`Run ${name.toUpperCase()}`} className="grid min-w-0 content-start gap-4">
      <Picker name={name} id={id} />
      {error ? (
        <Failure error={error} />
      ) : interaction ? (
        <>
          <div>
            <Status status={interaction.status} stage={interaction.stage} />
          </div>
          <p className="line-clamp-3 rounded-lg bg-hover px-3 py-2 whitespace-pre-wrap break-words">
            {interaction.instruction}
          </p>
          <Numbers interaction={interaction} other={other} />
          <SideTrace key={interaction.id} interaction={interaction} name={`run ${name.toUpperCase()}`} />
        </>
      ) : id ? (
        <Loading />
      ) : (
        <div className="rounded-xl border">
          <Empty icon="columns" title="Select a run">
            Select one of the latest runs above.
          </Empty>
        </div>
      )}
    </section>
  )
}

function Picker({ name, id }: { readonly name: 'a' | 'b'; readonly id: string | undefined }) {
  const navigate = useNavigate()
  const runs = useInfiniteQuery(runsQuery({}))
  const latest = runs.data?.pages.flatMap(({ interactions }) => interactions) ?? []
  return (
    <Select
      aria-label={`Run ${name.toUpperCase()}`}
      value={id ?? ''}
      onChange={(event) =>
        navigate({
          to: '/compare',
          search: (before) => ({ ...before, [name]: event.target.value || undefined }),
          replace: true,
        })
      }
    >
      <option value="">Select a run…</option>
      {id && !latest.some((run) => run.id === id) && <option value={id}>{id}</option>}
      {latest.map((run) => (
        <option key={run.id} value={run.id}>
          {run.instruction.slice(0, 60)} · {run.model} · {ago(run.createTime)}
        </option>
      ))}
    </Select>
  )
}

function Numbers({
  interaction,
  other,
}: {
  readonly interaction: Interaction
  readonly other: Interaction | undefined
}) {
  const rows = [
    ['Duration', (run: Interaction) => run.usage.duration_ms ?? 0, duration],
    ['Tokens', (run: Interaction) => run.usage.input_tokens + run.usage.output_tokens, count],
    ['Tool calls', (run: Interaction) => run.usage.tool_calls ?? 0, count],
    ['Cost', (run: Interaction) => Number(run.usage.cost?.amount ?? 0), (value: number) => cost(value)],
  ] as const
  return (
    <dl className="grid grid-cols-2 overflow-hidden rounded-xl border bg-card sm:grid-cols-4 [&>div]:shadow-[0_0_0_.5px_var(--line)]">
      {rows.map(([name, of, words]) => {
        const change = other ? relative(of(interaction), of(other)) : undefined
        return (
          <div key={name} className="px-3 py-2">
            <dt className="text-small text-soft">{name}</dt>
            <dd className="font-semibold tabular-nums">{words(of(interaction))}</dd>
            <dd
              className={cx(
                'h-[1.125rem] text-small tabular-nums',
                change?.startsWith('−') ? 'text-green' : 'text-faint',
              )}
            >
              {change}
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

function relative(value: number, other: number): string | undefined {
  if (other === 0 || value === other) return value === other ? 'no change' : undefined
  const percent = Math.round(((value - other) / other) * 100)
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent)} %`
}

function SideTrace({ interaction, name }: { readonly interaction: Interaction; readonly name: string }) {
  const { trace } = useRun(interaction.id)
  return (
    <>
      <TraceView trace={trace} files={interaction.files} name={name} />
      <LabelSuffix value={name}>{interaction.files.length > 0 && <Files files={interaction.files} />}</LabelSuffix>
    </>
  )
}
