/** Idempotency keys: which interaction each of a caller's keys identifies. */
import { ErrandError, type RunError } from '../domain/errors.ts'
import { DELETED_AT_ONCE, deleteInBatches } from './delete-in-batches.ts'
import type { Database } from './port.ts'

export interface KeyHolder {
  readonly interactionId: string
  /** Whether the run failed with a retryable error: the next request with the key and the same body starts a new run. */
  readonly released: boolean
}

/**
 * Returns the interaction that holds an idempotency key, or undefined if the key is free. Throws `idempotency_mismatch` if
 * the key was used with another body.
 */
export async function findByIdempotencyKey(
  db: Database,
  projectId: string,
  idempotency: { readonly key: string; readonly fingerprint: string },
  notBefore: number,
): Promise<KeyHolder | undefined> {
  const row = await db.query
    .selectFrom('idempotency as k')
    .leftJoin('interactions as i', 'i.id', 'k.interaction_id')
    .select(['k.fingerprint', 'k.interaction_id', 'i.error'])
    .where('k.project_id', '=', projectId)
    .where('k.key', '=', idempotency.key)
    .where('k.created_at', '>=', notBefore)
    .executeTakeFirst()
  if (!row) return undefined
  if (row.fingerprint !== idempotency.fingerprint) {
    throw new ErrandError(
      'idempotency_mismatch',
      'This Idempotency-Key was used before with another request body. Send the same body again, or use a new key.',
    )
  }
  const error: RunError | undefined = row.error === null ? undefined : JSON.parse(row.error)
  return { interactionId: row.interaction_id, released: error?.retryable === true }
}

/** Deletes idempotency keys that were stored before `before`, in milliseconds since the Unix epoch. */
export async function deleteIdempotencyKeys(db: Database, before: number): Promise<void> {
  const query = db.query
    .deleteFrom('idempotency')
    .where('created_at', '<', before)
    .where('interaction_id', 'in', (eb) =>
      eb
        .selectFrom('idempotency')
        .select('interaction_id')
        .where('created_at', '<', before)
        .orderBy('created_at')
        .limit(DELETED_AT_ONCE),
    )
    .returning('interaction_id')
    .compile()
  await deleteInBatches(db, query)
}
