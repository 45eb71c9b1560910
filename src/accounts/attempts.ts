/** Limits sign-in attempts. Counted in the database, so that several nodes admit no more than one would. */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { assertMade, type Database } from '../store/port.ts'

const WINDOW_MS = 15 * 60_000

export interface Attempts {
  /** Counts an attempt. Returns the seconds to wait if there were too many, otherwise undefined. */
  begin(who: string, limit: number): Promise<number | undefined>
  /** Resets the count after a successful attempt. */
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
      // Deletes expired rows, so that the table stays small.
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

/** Hashes e-mail and IP addresses, which are not stored as they are. */
function nameOf(who: string): string {
  return createHash('sha256').update(who).digest('base64url')
}
