/** Removing much, a little at a time: one statement for all of it would hold every other write up. */
import { assertMade, type Database, type Query } from './port.ts'

export const DELETED_AT_ONCE = 1_000

/** Does it again and again, each time in a transaction of its own, until it returns fewer rows than that. */
export async function deleteInBatches(db: Database, query: Query): Promise<void> {
  for (;;) {
    const result = await db.write([{ query }])
    assertMade(result)
    if (result.rows[0]!.length < DELETED_AT_ONCE) return
  }
}
