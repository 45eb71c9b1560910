/**
 * Runs batches of writes on SQLite. A batch is one transaction, in which each write succeeds or is rolled back by itself.
 * That needs savepoints, for which SQLite copies each page before changing it. Writes rarely fail, so a batch first runs
 * without savepoints, and runs again with them if a write fails. If the whole transaction fails (a full disk), each write
 * gets its own transaction, so that one write does not make the others fail.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { WriteDone } from '../port.ts'

/** Writes, each a list of [SQL, parameters, number of rows that must be affected]. */
export type BatchRequest = (readonly [sql: string, parameters: readonly unknown[], rows: number | undefined])[][]
/** Result of a write: its rows, or the statement that failed. */
type BatchResult = WriteDone | { readonly ok: false; readonly failedAt: number; readonly unmet: 'rows' | 'unique' }
/** Results by write. A string is the reason why the write could not be made. */
export type BatchReply = readonly (BatchResult | string)[]

const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
const SQLITE_CONSTRAINT_UNIQUE = 2067

/** Returns a function that runs batches on this connection. */
export function createBatchRunner(db: DatabaseSync): (batch: BatchRequest) => BatchReply {
  const prepared = new Map<string, { statement: StatementSync; returns: boolean }>()
  const [begin, end] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
  const [save, release] = [db.prepare('SAVEPOINT w'), db.prepare('RELEASE w')]

  function runBatch(batch: BatchRequest): BatchReply {
    const results = commit(batch, runWithoutSavepoints) ?? commit(batch, runWithSavepoints)
    if (typeof results !== 'string') return results
    if (batch.length === 1) return [results]
    return batch.map((write) => {
      const alone = commit([write], runWithSavepoints)
      return typeof alone === 'string' ? alone : alone[0]!
    })
  }

  /** Runs a batch in one transaction. Rolls back if `run` returns undefined. Returns the reason, a string, if it fails. */
  function commit<R extends BatchResult[] | undefined>(
    batch: BatchRequest,
    run: (batch: BatchRequest) => R,
  ): R | string {
    try {
      begin.run()
      const results = run(batch)
      if (results) end.run()
      else db.exec('ROLLBACK')
      return results
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      return (error as Error).message
    }
  }

  function runWithoutSavepoints(batch: BatchRequest): BatchResult[] | undefined {
    const results: BatchResult[] = []
    for (const write of batch) {
      const result = runWrite(write)
      if (!result.ok) return undefined
      results.push(result)
    }
    return results
  }

  function runWithSavepoints(batch: BatchRequest): BatchResult[] {
    return batch.map((write) => {
      save.run()
      const result = runWrite(write)
      if (result.ok) release.run()
      else db.exec('ROLLBACK TO w; RELEASE w')
      return result
    })
  }

  /** Stops at the first statement that fails. The caller must roll back the statements before it. */
  function runWrite(write: BatchRequest[number]): BatchResult {
    const rows: Record<string, unknown>[][] = []
    for (const [i, [sql, parameters, expected]] of write.entries()) {
      let touched: number
      try {
        const { statement, returns } = prepare(sql)
        if (returns) {
          const returned = statement.all(...(parameters as SQLInputValue[]))
          rows.push(returned)
          touched = returned.length
        } else {
          touched = Number(statement.run(...(parameters as SQLInputValue[])).changes)
          rows.push([])
        }
      } catch (error) {
        if (!isUniqueViolation(error)) throw error
        return { ok: false, failedAt: i, unmet: 'unique' }
      }
      if (expected !== undefined && touched !== expected) return { ok: false, failedAt: i, unmet: 'rows' }
    }
    return { ok: true, rows }
  }

  function prepare(sql: string) {
    let entry = prepared.get(sql)
    if (!entry) {
      if (prepared.size >= 500) prepared.clear()
      const statement = db.prepare(sql)
      entry = { statement, returns: statement.columns().length > 0 }
      prepared.set(sql, entry)
    }
    return entry
  }

  return runBatch
}

function isUniqueViolation(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode
  return code === SQLITE_CONSTRAINT_PRIMARYKEY || code === SQLITE_CONSTRAINT_UNIQUE
}
