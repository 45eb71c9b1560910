/** Records of removed interactions: what was removed, when and by whom. They outlive the interaction's events and files. */
import { DELETED_AT_ONCE, deleteInBatches } from './delete-in-batches.ts'
import type { Database, Statement } from './port.ts'

export interface Removal {
  readonly interactionId: string
  readonly projectId: string
  /** Milliseconds since the Unix epoch. */
  readonly at: number
  /** Id of the caller's key, or `retention`. */
  readonly removedBy: string
  readonly createdAt: number
  readonly events: number
  /** Number of input and output files. */
  readonly files: number
  readonly fileBytes: number
}

/** Records the removal. Must be part of the write that removes the interaction. */
export function removalStatement(db: Database, removal: Removal): Statement {
  const query = db.query
    .insertInto('removals')
    .values({
      interaction_id: removal.interactionId,
      project_id: removal.projectId,
      at: removal.at,
      removed_by: removal.removedBy,
      created_at: removal.createdAt,
      events: removal.events,
      files: removal.files,
      file_bytes: removal.fileBytes,
    })
    .compile()
  return { query }
}

/** The latest `limit` removals, newest first. */
export async function listRemovals(db: Database, limit: number): Promise<Removal[]> {
  const rows = await db.query
    .selectFrom('removals')
    .selectAll()
    .orderBy('at', 'desc')
    .orderBy('interaction_id', 'desc')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    interactionId: row.interaction_id,
    projectId: row.project_id,
    at: Number(row.at),
    removedBy: row.removed_by,
    createdAt: Number(row.created_at),
    events: Number(row.events),
    files: Number(row.files),
    fileBytes: Number(row.file_bytes),
  }))
}

/** Deletes records from before a time in milliseconds since the Unix epoch. */
export async function deleteRemovals(db: Database, before: number): Promise<void> {
  const query = db.query
    .deleteFrom('removals')
    .where('interaction_id', 'in', (eb) =>
      eb.selectFrom('removals').select('interaction_id').where('at', '<', before).orderBy('at').limit(DELETED_AT_ONCE),
    )
    .returning('interaction_id')
    .compile()
  await deleteInBatches(db, query)
}
