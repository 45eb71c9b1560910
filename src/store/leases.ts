/** Leases: the time for which a claim holds, on the database's clock. Renewed by their owner, read and ended by others. */
import { sql } from 'kysely'
import { directoryPrefix } from './claim-row.ts'
import { databaseNow, fromNow } from './clock.ts'
import { fixedQuery } from './fixed-query.ts'
import { textsOf } from './json-list.ts'
import { assertMade, type Database } from './port.ts'
import { retryWhileDatabaseDown } from './retry-while-down.ts'

/**
 * Renews this owner's leases on these interactions. Returns the ids that it still owns, with their epochs. Retries while
 * the database is down, for a quarter of a lease: renewals are too far apart to skip one.
 */
export async function renewLeases(
  db: Database,
  owner: string,
  leaseMs: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const query = db.query
    .updateTable('interactions')
    .set({ lease_until: fromNow(db.dialect, leaseMs) })
    .where('id', 'in', textsOf(db.dialect, JSON.stringify(ids)))
    .where('lease_owner', '=', owner)
    .where('status', '=', sql.lit('running'))
    .returning(['id', 'epoch'])
    .compile()
  const result = await retryWhileDatabaseDown(leaseMs / 4, () => db.write([{ query }]))
  assertMade(result)
  return new Map(result.rows[0]!.map((row) => [String(row.id), Number(row.epoch)]))
}

const epochsOf = fixedQuery((db, { ids }: { ids: string }) =>
  db.query.selectFrom('interactions').select(['id', 'epoch']).where('id', 'in', textsOf(db.dialect, ids)),
)

/** The current epochs by id. A worker that runs an interaction under a lower epoch has lost it. */
export async function readEpochs(db: Database, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await db.read(epochsOf(db, { ids: JSON.stringify(ids) }))
  return new Map(rows.map(({ id, epoch }) => [id, Number(epoch)]))
}

/** The current or last owner of an interaction. */
export interface Holder {
  readonly status: string
  readonly owner: string | null
  /** The lease has neither run out nor been released. */
  readonly held: boolean
}

export async function readHolder(db: Database, id: string): Promise<Holder | undefined> {
  const row = await db.query
    .selectFrom('interactions')
    .select(['status', 'lease_owner'])
    .select((eb) => eb('lease_until', '>', databaseNow(db.dialect)).as('held'))
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { status: row.status, owner: row.lease_owner, held: Boolean(row.held) }
}

/** Other processes of the owner's data directory that hold leases. */
export async function readOwnersInSameDirectory(db: Database, owner: string): Promise<string[]> {
  const rows = await db.query
    .selectFrom('interactions')
    .select('lease_owner')
    .distinct()
    .where('status', '=', sql.lit('running'))
    .where('lease_until', '>', databaseNow(db.dialect))
    .where('lease_owner', 'like', `${directoryPrefix(owner)}%`)
    .where('lease_owner', '<>', owner)
    .execute()
  return rows.map(({ lease_owner }) => lease_owner!)
}

/** Ends the leases of a process that is dead. */
export async function expireLeases(db: Database, dead: string): Promise<void> {
  const query = db.query
    .updateTable('interactions')
    .set({ lease_until: databaseNow(db.dialect) })
    .where('lease_owner', '=', dead)
    .where('status', '=', sql.lit('running'))
    .compile()
  await db.write([{ query }])
}

/** Releases the lease on an interaction that was ended from outside, once its owner has cleaned up after it. */
export async function releaseLease(db: Database, owner: string, id: string): Promise<void> {
  const query = db.query
    .updateTable('interactions')
    .set({ lease_owner: null, lease_until: 0 })
    .where('id', '=', id)
    .where('lease_owner', '=', owner)
    .where('status', '<>', sql.lit('running'))
    .compile()
  await db.write([{ query }])
}
