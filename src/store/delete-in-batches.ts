/** Deletes many rows in small batches. A single statement would block every other write. */
import { assertMade, type Database, type Query } from './port.ts'

/** Maximum number of rows in one batch. */
export const DELETED_AT_ONCE = 1_000

/** Repeats the query, each time in its own transaction, until it returns fewer than DELETED_AT_ONCE rows. */
export async function deleteInBatches(db: Database, query: Query): Promise<void> {
  for (;;) {
    const result = await db.write([{ query }])
    assertMade(result)
    if (result.rows[0]!.length < DELETED_AT_ONCE) return
  }
}
