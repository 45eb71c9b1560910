/** Removing much, a little at a time: one statement for all of it would hold every other write up. */
import type { Database, Query } from './port.ts'

export const DELETED_AT_ONCE = 1_000

/** Does it again and again, each time in a transaction of its own, until it returns fewer rows than that. */
export async function deleteInBatches(db: Database, query: Query): Promise<void> {
  for (;;) {
    const result = await db.write([{ query }])
    if (!result.ok || result.rows[0]!.length < DELETED_AT_ONCE) return
  }
}
