/**
 * What ended runs used, by day, project, agent, model and key.
 *
 * The transaction of an end adds a row of its own: exactly one, as there is exactly one end, and no row that all ends of a
 * busy project wait for (one row a group that each end rewrites would, on Postgres, until the commit before it is on disk).
 * Later those rows are added together, again in one transaction. So every moment's sum over the table is what was used,
 * whoever dies when; what removes an interaction leaves it alone.
 *
 * How long runs took falls into buckets, each ending a fifth above the one before; the bucket is part of a row's key, so that
 * the rows of a day are the histogram that its percentiles are read from.
 */
import { sql } from 'kysely'
import type { Usage } from '../domain/usage.ts'
import { fixedQuery } from './fixed-query.ts'
import { textsOf } from './lists.ts'
import type { Database, Statement } from './port.ts'

const BUCKET_GROWTH = 1.2
const NANOS = 1e9

const GROUP = ['project_id', 'day', 'agent_id', 'model', 'key_id', 'latency_bucket'] as const
const FIGURES = ['runs', 'failed', 'cancelled', 'input_tokens', 'output_tokens', 'cost_nanos'] as const

interface Used {
  readonly id: string
  readonly day: string
  readonly bucket: number
  readonly failed: number
  readonly cancelled: number
  readonly input: number
  readonly output: number
  readonly nanos: number
}

const insertUsage = fixedQuery((db, used: Used) =>
  db.query
    .insertInto('usage')
    .columns([...GROUP, 'interaction_id', ...FIGURES])
    .expression((eb) =>
      eb
        .selectFrom('interactions as i')
        .select((s) => {
          const number = (value: number) => s.cast<number>(s.val(value), 'bigint')
          return [
            'i.project_id',
            s.cast<string>(s.val(used.day), 'text').as('day'),
            s.fn.coalesce('i.agent_id', sql<string>`''`).as('agent_id'),
            s.fn.coalesce('i.model', sql<string>`''`).as('model'),
            'i.key_id',
            number(used.bucket).as('latency_bucket'),
            'i.id as interaction_id',
            s.lit(1).as('runs'),
            number(used.failed).as('failed'),
            number(used.cancelled).as('cancelled'),
            number(used.input).as('input_tokens'),
            number(used.output).as('output_tokens'),
            number(used.nanos).as('cost_nanos'),
          ]
        })
        .where('i.id', '=', used.id),
    ),
)

/** For the transaction that writes the end of that interaction, behind the statement that is fenced. `at`: ms since 1970. */
export function usageStatement(
  db: Database,
  id: string,
  { status, usage, at }: { readonly status: string; readonly usage: Usage; readonly at: number },
): Statement {
  const query = insertUsage(db, {
    id,
    day: dayOf(at),
    bucket: bucketOf(usage.duration_ms),
    failed: status === 'failed' ? 1 : 0,
    cancelled: status === 'cancelled' ? 1 : 0,
    input: usage.input_tokens,
    output: usage.output_tokens,
    nanos: Math.round(Number(usage.cost?.amount ?? 0) * NANOS),
  })
  return { query, rows: 1 }
}

/** UTC: `2026-11-21`. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function bucketOf(ms: number): number {
  return ms <= 1 ? 0 : Math.ceil(Math.log(ms) / Math.log(BUCKET_GROWTH))
}

/** What stands for all durations of a bucket, milliseconds: none of them is a tenth away from it. */
export function middleOf(bucket: number): number {
  return Number((BUCKET_GROWTH ** (bucket - 0.5)).toPrecision(4))
}

/** Adds rows of single ends together, at most `limit` of them; returns how many there were. */
export async function addUsageTogether(db: Database, limit: number): Promise<number> {
  const rows = await db.query
    .selectFrom('usage')
    .select('interaction_id')
    .where('interaction_id', '<>', sql.lit(''))
    .orderBy('interaction_id')
    .limit(limit)
    .execute()
  if (rows.length === 0) return 0
  const ids = textsOf(db.dialect, JSON.stringify(rows.map((row) => row.interaction_id)))
  const add = db.query
    .insertInto('usage')
    .columns([...GROUP, 'interaction_id', ...FIGURES])
    .expression((eb) =>
      eb
        .selectFrom('usage as s')
        .select([...GROUP])
        .select(() => [sql<string>`''`.as('interaction_id'), ...FIGURES.map((name) => sumOf(name).as(name))])
        .where('s.interaction_id', 'in', ids)
        .groupBy([...GROUP]),
    )
    .onConflict((conflict) =>
      conflict
        .columns([...GROUP, 'interaction_id'])
        .doUpdateSet((eb) =>
          Object.fromEntries(FIGURES.map((name) => [name, eb(`usage.${name}`, '+', eb.ref(`excluded.${name}`))])),
        ),
    )
    .compile()
  const remove = db.query.deleteFrom('usage').where('interaction_id', 'in', ids).compile()
  // Who does the same at the same time finds none left to remove, and all that it added is undone.
  const result = await db.write([{ query: add }, { query: remove, rows: rows.length }])
  return result.ok ? rows.length : 0
}

function sumOf(name: (typeof FIGURES)[number]) {
  return sql<number>`cast(sum(${sql.ref(name)}) as bigint)`
}

/** By what figures can be told apart. */
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
  /** At least one. */
  readonly projectIds: readonly string[]
  /** Days, both included. */
  readonly from: string
  readonly to: string
  readonly groups: readonly UsageGroup[]
  readonly agentId?: string
  readonly model?: string
  readonly keyId?: string
}

/** Figures of the runs of one bucket, by the groups that were asked for. */
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

/** In the order of the groups, at most `limit`. */
export async function readUsage(db: Database, question: UsageQuestion, limit: number): Promise<UsagePart[]> {
  const { projectIds, from, to, groups, agentId, model, keyId } = question
  const columns = groups.map((group) => COLUMN_OF[group])
  let query = db.query
    .selectFrom('usage')
    .where('project_id', 'in', textsOf(db.dialect, JSON.stringify(projectIds)))
    .where('day', '>=', from)
    .where('day', '<=', to)
  if (agentId !== undefined) query = query.where('agent_id', '=', agentId)
  if (model !== undefined) query = query.where('model', '=', model)
  if (keyId !== undefined) query = query.where('key_id', '=', keyId)
  for (const column of columns) query = query.orderBy(column)
  const rows = await query
    .select([...columns, 'latency_bucket'])
    // As text: beyond nine million dollars, the number would not be exact.
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
