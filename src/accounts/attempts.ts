/** Failed sign-ins, counted in the database, so that all nodes together admit no more than one would. */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { assertMade, type Database } from '../store/port.ts'

const WINDOW_MS = 15 * 60_000

export interface Attempts {
  /** Counts one more. Seconds to wait where these were too many; undefined: go on. */
  begin(who: string, limit: number): Promise<number | undefined>
  /** What was tried was right: nothing of it counts. */
  forget(who: string): Promise<void>
}

export function createAttempts(db: Database, now: () => number): Attempts {
  return {
    async begin(who, limit) {
      const at = now()
      const fresh = sql<boolean>`sign_in_attempts.until <= ${at}`
      const query = db.query
        .insertInto('sign_in_attempts')
        .values({ who: nameOf(who), count: 1, until: at + WINDOW_MS })
        .onConflict((conflict) =>
          conflict.column('who').doUpdateSet({
            count: sql<number>`case when ${fresh} then 1 else sign_in_attempts.count + 1 end`,
            until: sql<number>`case when ${fresh} then ${at + WINDOW_MS} else sign_in_attempts.until end`,
          }),
        )
        .returning(['count', 'until'])
        .compile()
      // What is long over goes, so that the table stays as small as the trouble of the day.
      const old = db.query
        .deleteFrom('sign_in_attempts')
        .where('until', '<', at - WINDOW_MS)
        .compile()
      const result = await db.write([{ query, rows: 1 }, { query: old }])
      assertMade(result)
      const { count, until } = result.rows[0]![0]!
      return Number(count) <= limit ? undefined : Math.max(1, Math.ceil((Number(until) - at) / 1000))
    },
    async forget(who) {
      await db.write([{ query: db.query.deleteFrom('sign_in_attempts').where('who', '=', nameOf(who)).compile() }])
    },
  }
}

/** Addresses of people and machines are not kept as they are. */
function nameOf(who: string): string {
  return createHash('sha256').update(who).digest('base64url')
}
