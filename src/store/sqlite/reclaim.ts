/**
 * Frees what deleted rows leave in SQLite's files: free pages, which keep the file large, and old page versions in the
 * write-ahead log, which still contain the deleted text. `secure_delete` has already overwritten it everywhere else.
 */
import type { DatabaseSync } from 'node:sqlite'

/** Pages freed in one step, 4 MiB. Other writes wait for a step. */
const PAGES_AT_ONCE = 1_000
/** Timeout for emptying the log. A reader may hold it; then it is emptied next time, and writes do not wait long. */
const LOG_TIMEOUT_MS = 100
const INCREMENTAL = 2

/** True if more is left, or the reason why the step failed. */
export type ReclaimReply = boolean | { readonly problem: string }

/** Returns a function that does one step: it frees some pages or, when none is left, empties the log. */
export function createReclaimer(db: DatabaseSync, busyTimeoutMs: number): () => ReclaimReply {
  const read = (pragma: string) => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
  // A file created before this setting keeps its free pages for new rows, until VACUUM (docs/operating.md).
  const shrinks = read('auto_vacuum') === INCREMENTAL

  function freePages(): boolean {
    const before = shrinks ? read('freelist_count') : 0
    if (before === 0) return false
    db.exec(`PRAGMA incremental_vacuum(${PAGES_AT_ONCE})`)
    const after = read('freelist_count')
    return after > 0 && after < before
  }

  function emptyLog(): void {
    db.exec(`PRAGMA busy_timeout = ${LOG_TIMEOUT_MS}`)
    try {
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
  }

  return () => {
    try {
      if (freePages()) return true
      emptyLog()
      return false
    } catch (error) {
      return { problem: (error as Error).message }
    }
  }
}
