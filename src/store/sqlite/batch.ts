/**
 * Writes to SQLite: one batch is one transaction, each write in it stands or falls alone. For a savepoint each, SQLite copies
 * every page before it changes it; writes seldom fall, so a batch goes without, and is begun again with them where one does.
 * Where one transaction for all can't be (a full disk), it is one for each, so that one write does not take its neighbours
 * along.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { WriteDone } from '../port.ts'

/** Writes, each a list of [sql, parameters, rows that must be touched]. */
export type BatchRequest = (readonly [sql: string, parameters: readonly unknown[], rows: number | undefined])[][]
/** What of a write stood, or which of its statements did not do what it had to. */
type BatchResult = WriteDone | { readonly ok: false; readonly failedAt: number; readonly unmet: 'rows' | 'unique' }
/** A string: why that write could not be made. */
export type BatchReply = readonly (BatchResult | string)[]

const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
const SQLITE_CONSTRAINT_UNIQUE = 2067

/** What runs batches on this connection. */
export function createBatchRunner(db: DatabaseSync): (batch: BatchRequest) => BatchReply {
  const prepared = new Map<string, { statement: StatementSync; returns: boolean }>()
  const [begin, end] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
  const [save, release] = [db.prepare('SAVEPOINT w'), db.prepare('RELEASE w')]

  function runBatch(batch: BatchRequest): BatchReply {
    const results = commit(batch, runUnlessOneFalls) ?? commit(batch, runEach)
    if (typeof results !== 'string') return results
    if (batch.length === 1) return [results]
    return batch.map((write) => {
      const alone = commit([write], runEach)
      return typeof alone === 'string' ? alone : alone[0]!
    })
  }

  /** In one transaction; a string: why it could not be. What `run` gives nothing for is undone. */
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

  function runUnlessOneFalls(batch: BatchRequest): BatchResult[] | undefined {
    const results: BatchResult[] = []
    for (const write of batch) {
      const result = runWrite(write)
      if (!result.ok) return undefined
      results.push(result)
    }
    return results
  }

  function runEach(batch: BatchRequest): BatchResult[] {
    return batch.map((write) => {
      save.run()
      const result = runWrite(write)
      if (result.ok) release.run()
      else db.exec('ROLLBACK TO w; RELEASE w')
      return result
    })
  }

  /** Up to the statement that can't be; what it wrote before that stands until it is undone. */
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
