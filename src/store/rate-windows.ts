/**
 * Rate-limit windows on Postgres: one row for each project and class of calls, counted by all nodes on the database's clock.
 * The table is unlogged, so a count waits for no fsync. After a crash of the database all windows start from zero.
 */
import { sql } from 'kysely'
import { databaseNow } from './clock.ts'
import { assertMade, type Database } from './port.ts'

export interface WindowKey {
  readonly projectId: string
  /** Class of calls. */
  readonly class: string
}

export interface WindowCount {
  /** Number of calls that were admitted. The others exceeded the limit and are not counted. */
  readonly granted: number
  /** Calls in the window, including these. */
  readonly used: number
  readonly endsInMs: number
  /** Identifies the window: its end on the database's clock. */
  readonly window: number
}

/** Counts up to `calls` more calls without exceeding `limit`; starts a new window if the current one is over. */
export async function countCalls(
  db: Database,
  key: WindowKey,
  calls: number,
  { limit, windowMs }: { readonly limit: number; readonly windowMs: number },
): Promise<WindowCount> {
  const now = databaseNow(db.dialect)
  const first = Math.min(calls, limit)
  // Compares with the time in the inserted row: reading the clock twice could give two answers.
  const isOver = sql`w.ends_at <= excluded.ends_at - ${windowMs}::bigint`
  const room = sql`least(${calls}::int, greatest(${limit}::int - w.used, 0))`
  const query = sql`
    insert into rate_windows as w (project_id, class, ends_at, used, granted)
    values (${key.projectId}, ${key.class}, ${now} + ${windowMs}::bigint, ${first}, ${first})
    on conflict (project_id, class) do update set
      ends_at = case when ${isOver} then excluded.ends_at else w.ends_at end,
      used = case when ${isOver} then excluded.used else w.used + ${room} end,
      granted = case when ${isOver} then excluded.granted else ${room} end
    returning granted, used, ends_at, ends_at - ${now} as ends_in`.compile(db.query)
  const result = await db.write([{ query }])
  assertMade(result)
  const row = result.rows[0]![0]!
  return {
    granted: Number(row.granted),
    used: Number(row.used),
    endsInMs: Number(row.ends_in),
    window: Number(row.ends_at),
  }
}

/** Subtracts one call from a window; does nothing if that window is over. */
export async function uncountCall(db: Database, key: WindowKey, window: number): Promise<void> {
  const query = db.query
    .updateTable('rate_windows')
    .set((eb) => ({ used: eb('used', '-', 1) }))
    .where('project_id', '=', key.projectId)
    .where('class', '=', key.class)
    .where('ends_at', '=', window)
    .where('used', '>', 0)
    .compile()
  await db.write([{ query }])
}
