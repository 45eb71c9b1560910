/**
 * Windows of the rate limits on Postgres, one row a project and class of calls, counted by all nodes together and by the
 * database's clock. The table is unlogged: a count waits for no fsync, and behind a crash of the database windows begin anew.
 */
import { sql } from 'kysely'
import { databaseNow } from './clock.ts'
import { assertMade, type Database } from './port.ts'

export interface WindowKey {
  readonly projectId: string
  /** Of calls. */
  readonly class: string
}

export interface WindowCount {
  /** Of the calls that came. The others found no room, and are not counted. */
  readonly granted: number
  /** In the window, with these. */
  readonly used: number
  readonly endsInMs: number
  /** Names the window: when it ends, by the database's clock. */
  readonly window: number
}

/** Counts `calls` more, as far as the window has room for `limit`; begins the next one where it is over. */
export async function countCalls(
  db: Database,
  key: WindowKey,
  calls: number,
  { limit, windowMs }: { readonly limit: number; readonly windowMs: number },
): Promise<WindowCount> {
  const now = databaseNow(db.dialect)
  const first = Math.min(calls, limit)
  // By the time in the row that is offered: read twice, the clock could say both that the window is over and that it is not.
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

/** Takes one call out of that window again; nothing where it is over. */
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
