/** Idempotency keys: which interaction a caller's key stands for. */
import { ErrandError } from '../domain/errors.ts'
import { DELETED_AT_ONCE, deleteInBatches } from './delete-in-batches.ts'
import type { Database } from './port.ts'

/** The interaction that an idempotency key stands for. Throws `idempotency_mismatch` where the request is another. */
export async function findByIdempotencyKey(
  db: Database,
  projectId: string,
  idempotency: { readonly key: string; readonly fingerprint: string },
  notBefore: number,
): Promise<string | undefined> {
  const row = await db.query
    .selectFrom('idempotency')
    .select(['fingerprint', 'interaction_id'])
    .where('project_id', '=', projectId)
    .where('key', '=', idempotency.key)
    .where('created_at', '>=', notBefore)
    .executeTakeFirst()
  if (!row) return undefined
  if (row.fingerprint !== idempotency.fingerprint) {
    throw new ErrandError(
      'idempotency_mismatch',
      'This Idempotency-Key was used before with another request body. Send the same body again, or use a new key.',
    )
  }
  return row.interaction_id
}

/** Forgets idempotency keys that are older than their time. */
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
