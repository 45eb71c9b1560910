/** Usage reports of an account's projects: sums, latency percentiles, and the names of projects and keys. */
import { ErrandError } from '../domain/errors.ts'
import { type Cost, formatNanos } from '../domain/usage.ts'
import { textsOf } from './json-list.ts'
import type { Database } from './port.ts'
import { middleOf, readUsage, type UsagePart, type UsageQuestion } from './usage.ts'

/** Maximum number of groups times buckets that one report reads. */
const MOST_PARTS = 50_000

export interface UsageFigures {
  readonly runs: number
  readonly failed: number
  readonly cancelled: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cost: Cost
  /** Time from acceptance to the end, of all runs; accurate to a tenth. Null if there are no runs. */
  readonly latencyMs: { readonly p50: number | null; readonly p95: number | null; readonly p99: number | null }
}

/** One row of the report. Has only the requested groups. Null: none, or removed since. */
export interface UsageRow extends UsageFigures {
  readonly day?: string
  readonly projectId?: string
  readonly projectName?: string | null
  readonly agentId?: string | null
  readonly model?: string | null
  readonly keyId?: string
  /** Name of the key, or of the user if the run was started in the console. */
  readonly keyName?: string | null
}

export interface UsageReport {
  readonly rows: readonly UsageRow[]
  readonly total: UsageFigures
}

/** Throws ErrandError `invalid_request` if the report would be too long. */
export async function reportUsage(db: Database, question: UsageQuestion): Promise<UsageReport> {
  const parts = await readUsage(db, question, MOST_PARTS + 1)
  if (parts.length > MOST_PARTS) {
    throw new ErrandError('invalid_request', 'The report has too many rows. Request fewer days or fewer groups.', {
      param: 'group',
    })
  }
  const rows = new Map<string, UsagePart[]>()
  for (const part of parts) {
    const row = question.groups.map((group) => part.of[group]).join('\n')
    rows.set(row, [...(rows.get(row) ?? []), part])
  }
  const nameOf = await readNames(db, parts)
  return {
    rows: [...rows.values()].map((of) => ({ ...describe(of[0]!.of, nameOf), ...figuresOf(of) })),
    total: figuresOf(parts),
  }
}

function figuresOf(parts: readonly UsagePart[]): UsageFigures {
  const sum = (figure: (part: UsagePart) => number) => parts.reduce((total, part) => total + figure(part), 0)
  const percentile = percentilesOf(parts)
  return {
    runs: sum(({ runs }) => runs),
    failed: sum(({ failed }) => failed),
    cancelled: sum(({ cancelled }) => cancelled),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cost: { amount: formatNanos(parts.reduce((total, { costNanos }) => total + costNanos, 0n)), currency: 'USD' },
    latencyMs: { p50: percentile(0.5), p95: percentile(0.95), p99: percentile(0.99) },
  }
}

/** Returns a function that finds the latency below which a given part of the runs lies, to the bucket. */
function percentilesOf(parts: readonly UsagePart[]): (part: number) => number | null {
  const runsIn = new Map<number, number>()
  for (const { bucket, runs } of parts) runsIn.set(bucket, (runsIn.get(bucket) ?? 0) + runs)
  const buckets = [...runsIn].sort(([a], [b]) => a - b)
  const all = buckets.reduce((total, [, runs]) => total + runs, 0)
  return (part) => {
    let left = Math.ceil(part * all)
    const found = buckets.find(([, runs]) => {
      left -= runs
      return left <= 0
    })
    return found ? middleOf(found[0]) : null
  }
}

type NameOf = (id: string) => string | null

function describe({ day, project, agent, model, key }: UsagePart['of'], nameOf: NameOf): Partial<UsageRow> {
  return {
    ...(day !== undefined && { day }),
    ...(project !== undefined && { projectId: project, projectName: nameOf(project) }),
    ...(agent !== undefined && { agentId: agent || null }),
    ...(model !== undefined && { model: model || null }),
    ...(key !== undefined && { keyId: key, keyName: nameOf(key) }),
  }
}

/** Reads names of projects, keys, and users (a run from the console has the user's id as its key). */
async function readNames(db: Database, parts: readonly UsagePart[]): Promise<NameOf> {
  const ids = new Set(parts.flatMap(({ of }) => [of.project, of.key]).filter((id) => id !== undefined))
  if (ids.size === 0) return () => null
  const tables = ['projects', 'keys', 'users'] as const
  const found = await Promise.all(
    tables.map((table) =>
      db.query
        .selectFrom(table)
        .select(['id', 'name'])
        .where('id', 'in', textsOf(db.dialect, JSON.stringify([...ids])))
        .execute(),
    ),
  )
  const names = new Map(found.flat().map(({ id, name }) => [id, name]))
  return (id) => names.get(id) ?? null
}
