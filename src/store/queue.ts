/** The queue: interactions that are not over and have no worker. How they return to it, and how long it is. */
import { sql } from 'kysely'
import { type Claim, COUNTED_FOR_COLUMNS, directoryPrefix, toCountedFor } from './claim-row.ts'
import { databaseNow, fromNow } from './clock.ts'
import { fixedQuery } from './fixed-query.ts'
import { type Database, fenced, type Statement } from './port.ts'
import type { CountedFor } from './usage.ts'

/**
 * Returns an interaction to the queue; does nothing if the claim is lost. Processes of the same data directory may claim it
 * first. `planned`: the attempt is not counted, as at a shutdown. Otherwise it counts towards MAX_ATTEMPTS.
 */
export async function requeue(
  db: Database,
  claim: Pick<Claim, 'id' | 'epoch'>,
  owner: string,
  { planned }: { readonly planned: boolean },
): Promise<void> {
  await db.write([
    {
      query: db.query
        .updateTable('interactions')
        .set((eb) => ({
          // No process has this name, so a renewal that is under way finds no row.
          lease_owner: directoryPrefix(owner),
          lease_until: databaseNow(db.dialect),
          ...(planned && { attempts: eb('attempts', '-', 1) }),
        }))
        .where('id', '=', claim.id)
        .where('epoch', '=', claim.epoch)
        .where('status', '=', sql.lit('running'))
        .compile(),
    },
  ])
}

/** Forgets earlier claims, under the fence: this run was not what ended their workers. */
export function resetAttemptsStatement(db: Database, { id, epoch }: Pick<Claim, 'id' | 'epoch'>): Statement {
  const query = db.query
    .updateTable('interactions')
    .set({ attempts: 1 })
    .where('id', '=', id)
    .where('epoch', '=', epoch)
  return fenced(query.compile())
}

const firstWaiting = fixedQuery((db, _: object) =>
  db.query
    .selectFrom('interactions')
    .select('id')
    .where('status', '=', sql.lit('running'))
    .where('lease_until', '<=', databaseNow(db.dialect))
    .limit(sql.lit(1)),
)

/** True if any interaction waits for a worker, even if its project has no room or another data directory goes first. */
export async function anyQueued(db: Database): Promise<boolean> {
  return (await db.read(firstWaiting(db, {}))).length > 0
}

/** Interactions that no worker has claimed for `waitMs` since they were accepted. */
export async function findStarved(
  db: Database,
  waitMs: number,
): Promise<{ id: string; epoch: number; createdAt: number; countedFor: CountedFor }[]> {
  const rows = await db.query
    .selectFrom('interactions')
    .select(['id', ...COUNTED_FOR_COLUMNS, 'epoch', 'created_at'])
    .where('status', '=', sql.lit('running'))
    .where('started_at', 'is', null)
    .where('created_at', '<', fromNow(db.dialect, -waitMs))
    .limit(100)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    epoch: row.epoch,
    createdAt: Number(row.created_at),
    countedFor: toCountedFor(row),
  }))
}

/** Counts interactions that are not over, with a worker and without one, and how long the oldest of those has waited. */
export async function readQueue(db: Database): Promise<{ running: number; queued: number; oldestWaitMs: number }> {
  const now = databaseNow(db.dialect)
  const rows = await db.query
    .selectFrom('interactions')
    .select((eb) => [
      eb('lease_until', '>', now).as('leased'),
      eb.fn.countAll<number>().as('count'),
      sql<number>`${now} - min(created_at)`.as('oldest'),
    ])
    .where('status', '=', sql.lit('running'))
    .groupBy('leased')
    .execute()
  const running = rows.find((row) => Boolean(row.leased))
  const queued = rows.find((row) => !row.leased)
  return {
    running: Number(running?.count ?? 0),
    queued: Number(queued?.count ?? 0),
    oldestWaitMs: Number(queued?.oldest ?? 0),
  }
}
