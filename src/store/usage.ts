/**
 * Usage of ended runs, by day, project, agent, model and key.
 *
 * The transaction that ends a run inserts one row into `usage_ends`. Later these rows are summed into `usage`, again in one
 * transaction. So at any time the sum over both tables is the usage, even if a process dies in between. Removing an
 * interaction does not change it.
 *
 * Rejected: one row for each group, rewritten at each end. All ends of a busy project would then wait for each other's
 * commits (on Postgres with 64 ends at the same time, a quarter of the ends a second; bench/ends.ts).
 *
 * Durations fall into buckets; each bucket's upper bound is a fifth higher than the one before. The bucket is part of a row's
 * key, so the rows of a day are a histogram from which percentiles are read.
 */
import { sql } from 'kysely'
import type { Usage } from '../domain/usage.ts'
import { fixedQuery } from './fixed-query.ts'
import { textsOf } from './json-list.ts'
import { type Database, type Statement, wasMade } from './port.ts'
import type { UsageEndsTable } from './tables.ts'

const BUCKET_GROWTH = 1.2
const NANOS = 1e9

const GROUP = ['project_id', 'day', 'agent_id', 'model', 'key_id', 'latency_bucket'] as const
const FIGURES = ['runs', 'failed', 'cancelled', 'input_tokens', 'output_tokens', 'cost_nanos'] as const
const ENDS = ['interaction_id', ...GROUP, ...FIGURES] as const

const insertUsage = fixedQuery((db, row: UsageEndsTable) =>
  db.query
    .insertInto('usage_ends')
    .values(Object.fromEntries(ENDS.map((name) => [name, row[name]])) as unknown as UsageEndsTable),
)

/** The project, agent, model and key whose usage it is. */
export interface CountedFor {
  readonly projectId: string
  readonly agentId: string | undefined
  /** The requested model, even if a fallback answered. */
  readonly model: string
  readonly keyId: string
}

/** The end of a run, as far as it is counted. */
interface CountedEnd {
  readonly countedFor: CountedFor
  readonly status: string
  readonly usage: Usage
  /** Milliseconds since the Unix epoch. */
  readonly at: number
}

/** Counts a run. Must be part of the write that ends the interaction, after its fenced statement. */
export function usageStatement(db: Database, id: string, { countedFor, status, usage, at }: CountedEnd): Statement {
  const query = insertUsage(db, {
    interaction_id: id,
    project_id: countedFor.projectId,
    day: dayOf(at),
    agent_id: countedFor.agentId ?? '',
    model: countedFor.model,
    key_id: countedFor.keyId,
    latency_bucket: bucketOf(usage.duration_ms),
    runs: 1,
    failed: status === 'failed' ? 1 : 0,
    cancelled: status === 'cancelled' ? 1 : 0,
    input_tokens: usage.input_tokens,
    output_tokens: usage.output_tokens,
    cost_nanos: Math.round(Number(usage.cost?.amount ?? 0) * NANOS),
  })
  return { query, rows: 1 }
}

/** The UTC day of a time, as `2026-11-21`. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function bucketOf(ms: number): number {
  return ms <= 1 ? 0 : Math.ceil(Math.log(ms) / Math.log(BUCKET_GROWTH))
}

/** Middle of a bucket, in milliseconds. Every duration in the bucket is within a tenth of it. */
export function middleOf(bucket: number): number {
  return Number((BUCKET_GROWTH ** (bucket - 0.5)).toPrecision(4))
}

/** Moves at most `limit` rows of single ends into the sums. Returns how many it moved. */
export async function sumEndedUsage(db: Database, limit: number): Promise<number> {
  const rows = await db.query
    .selectFrom('usage_ends')
    .select('interaction_id')
    .orderBy('interaction_id')
    .limit(limit)
    .execute()
  if (rows.length === 0) return 0
  const ids = textsOf(db.dialect, JSON.stringify(rows.map((row) => row.interaction_id)))
  const add = db.query
    .insertInto('usage')
    .columns([...GROUP, ...FIGURES])
    .expression((eb) =>
      eb
        .selectFrom('usage_ends')
        .select([...GROUP])
        .select(() => FIGURES.map((name) => sumOf(name).as(name)))
        .where('interaction_id', 'in', ids)
        .groupBy([...GROUP]),
    )
    .onConflict((conflict) =>
      conflict
        .columns([...GROUP])
        .doUpdateSet((eb) =>
          Object.fromEntries(FIGURES.map((name) => [name, eb(`usage.${name}`, '+', eb.ref(`excluded.${name}`))])),
        ),
    )
    .compile()
  const remove = db.query.deleteFrom('usage_ends').where('interaction_id', 'in', ids).compile()
  // If another process sums the same rows, it finds fewer rows to delete, and its whole write is rolled back.
  const result = await db.write([{ query: add }, { query: remove, rows: rows.length }])
  return wasMade(result, 'rows') ? rows.length : 0
}

function sumOf(name: (typeof FIGURES)[number]) {
  return sql<number>`cast(sum(${sql.ref(name)}) as bigint)`
}

/** Dimensions by which figures can be grouped. */
export const USAGE_GROUPS = ['day', 'project', 'agent', 'model', 'key'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]

const COLUMN_OF = {
  day: 'day',
  project: 'project_id',
  agent: 'agent_id',
  model: 'model',
  key: 'key_id',
} as const satisfies Record<UsageGroup, (typeof GROUP)[number]>

export interface UsageQuestion {
  /** Must have at least one id. */
  readonly projectIds: readonly string[]
  /** First and last day, both included. */
  readonly from: string
  readonly to: string
  readonly groups: readonly UsageGroup[]
  readonly agentId?: string
  readonly model?: string
  readonly keyId?: string
}

/** Figures of one latency bucket, for one value of each requested group. */
export interface UsagePart {
  readonly of: { readonly [group in UsageGroup]?: string }
  readonly bucket: number
  readonly runs: number
  readonly failed: number
  readonly cancelled: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costNanos: bigint
}

/** Reads usage in the order of the groups, at most `limit` rows. */
export async function readUsage(db: Database, question: UsageQuestion, limit: number): Promise<UsagePart[]> {
  const { projectIds, from, to, groups, agentId, model, keyId } = question
  const columns = groups.map((group) => COLUMN_OF[group])
  // One statement reads both tables, so that no row is counted twice or missed while rows are moved.
  const rowsOf = (table: 'usage' | 'usage_ends') => {
    let query = db.query
      .selectFrom(table)
      .select([...GROUP, ...FIGURES])
      .where('project_id', 'in', projectIds)
      .where('day', '>=', from)
      .where('day', '<=', to)
    if (agentId !== undefined) query = query.where('agent_id', '=', agentId)
    if (model !== undefined) query = query.where('model', '=', model)
    if (keyId !== undefined) query = query.where('key_id', '=', keyId)
    return query
  }
  let query = db.query.selectFrom(rowsOf('usage').unionAll(rowsOf('usage_ends')).as('u'))
  for (const column of columns) query = query.orderBy(column)
  const rows = await query
    .select([...columns, 'latency_bucket'])
    // Read as text: above nine million dollars a number would not be exact.
    .select(FIGURES.map((name) => sql<string>`cast(sum(${sql.ref(name)}) as text)`.as(name)))
    .groupBy([...columns, 'latency_bucket'])
    .orderBy('latency_bucket')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    of: Object.fromEntries(groups.map((group) => [group, row[COLUMN_OF[group]]])),
    bucket: Number(row.latency_bucket),
    runs: Number(row.runs),
    failed: Number(row.failed),
    cancelled: Number(row.cancelled),
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    costNanos: BigInt(row.cost_nanos),
  }))
}
