/** Reads and deletes interactions. One operation a function. */
import { sql } from 'kysely'
import type { Stage, Status, StopReason } from '../domain/event.ts'
import type { Interaction, InteractionSummary, RunSpec, StoredFile } from '../domain/interaction.ts'
import type { Usage } from '../domain/usage.ts'
import { fromNow } from './clock.ts'
import { type Database, fenced, wasMade } from './port.ts'
import { type Removal, removalStatement } from './removals.ts'

/** Finds interactions that ended more than `ageMs` ago, oldest first. */
export async function findExpired(
  db: Database,
  ageMs: number,
  limit: number,
): Promise<{ id: string; projectId: string }[]> {
  const rows = await db.query
    .selectFrom('interactions')
    .select(['id', 'project_id'])
    .where('status', '<>', sql.lit('running'))
    // A sub-select: Postgres uses no index for a bound that could change from row to row.
    .where('ended_at', '<', sql<number>`(select ${fromNow(db.dialect, -ageMs)})`)
    .orderBy('ended_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ id: row.id, projectId: row.project_id }))
}

/** Returns the given ids that are in the table. */
export async function knownInteractions(db: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db.query.selectFrom('interactions').select('id').where('id', 'in', ids).execute()
  return new Set(rows.map(({ id }) => id))
}

export async function findInteraction(db: Database, id: string, projectId?: string): Promise<Interaction | undefined> {
  let query = interactionQuery(db).where('i.id', '=', id)
  if (projectId !== undefined) query = query.where('i.project_id', '=', projectId)
  const row = await query.executeTakeFirst()
  return row && toInteraction(row)
}

function interactionQuery(db: Database) {
  return db.query.selectFrom('interactions as i').innerJoin('specs as s', 's.interaction_id', 'i.id').select(COLUMNS)
}

/** Columns of a summary in the interaction's own row. */
export const OWN_COLUMNS = [
  'i.id',
  'i.project_id',
  'i.key_id',
  'i.status',
  'i.stage',
  'i.created_at',
  'i.ended_at',
  'i.last_seq',
  'i.stop_reason',
  'i.error',
  'i.usage',
] as const
export const SUMMARY_COLUMNS = [...OWN_COLUMNS, 's.spec', 's.labels'] as const
const COLUMNS = [...SUMMARY_COLUMNS, 'i.output_files'] as const

export type InteractionRow = Awaited<ReturnType<ReturnType<typeof interactionQuery>['executeTakeFirstOrThrow']>>

function toInteraction(row: InteractionRow): Interaction {
  const outputFiles = row.output_files === null ? [] : (JSON.parse(row.output_files) as StoredFile[])
  return { ...toSummary(row), outputFiles }
}

export function toSummary(row: Omit<InteractionRow, 'output_files'>): InteractionSummary {
  return {
    id: row.id,
    projectId: row.project_id,
    keyId: row.key_id,
    status: row.status as Status,
    stage: row.stage as Stage,
    spec: JSON.parse(row.spec) as RunSpec,
    labels: JSON.parse(row.labels) as Record<string, string>,
    createdAt: Number(row.created_at),
    endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
    stopReason: (row.stop_reason ?? undefined) as StopReason | undefined,
    error: row.error === null ? undefined : JSON.parse(row.error),
    usage: row.usage === null ? undefined : (JSON.parse(row.usage) as Usage),
    lastSeq: Number(row.last_seq),
  }
}

/**
 * Deletes an ended interaction with everything that belongs to it, and records the removal. Returns false, and changes
 * nothing, if the interaction does not exist or still runs.
 */
export async function deleteInteraction(db: Database, removal: Removal): Promise<boolean> {
  const { interactionId: id, projectId } = removal
  // The interaction is deleted last: row-level security finds the project of its other rows through it.
  const result = await db.write([
    ...(
      [
        'events',
        'turns',
        'specs',
        'idempotency',
        'audit',
        'result_media',
        'frames',
        'approvals',
        'webhooks',
        'webhook_deliveries',
      ] as const
    ).map((table) => ({
      query: db.query.deleteFrom(table).where('interaction_id', '=', id).compile(),
    })),
    { query: db.query.deleteFrom('labels').where('object_id', '=', id).where('kind', '=', 'interaction').compile() },
    fenced(
      db.query
        .deleteFrom('interactions')
        .where('id', '=', id)
        .where('project_id', '=', projectId)
        .where('status', '<>', 'running')
        .compile(),
    ),
    removalStatement(db, removal),
  ])
  return wasMade(result, 'fence')
}
