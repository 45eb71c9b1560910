/**
 * What deleted rows leave in SQLite's files: free pages, which make the file larger than its content, and earlier versions of pages in
 * the write-ahead log, which have the deleted text. `secure_delete` has overwritten it everywhere else.
 */
import type { DatabaseSync } from 'node:sqlite'

/** 4 MiB: other writes wait for one step. */
const PAGES_AT_ONCE = 1_000
/** A reader may hold the log: then it is emptied the next time, and writes do not wait for long. */
const LOG_TIMEOUT_MS = 100
const INCREMENTAL = 2

/** Whether more is left, or why a step failed. */
export type ReclaimReply = boolean | { readonly problem: string }

/** One step a call: some free pages, and after the last of them the log. */
export function createReclaimer(db: DatabaseSync, busyTimeoutMs: number): () => ReclaimReply {
  const read = (pragma: string) => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
  // A file that was made before this was set keeps its free pages for new rows, until VACUUM (docs/operating.md).
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
