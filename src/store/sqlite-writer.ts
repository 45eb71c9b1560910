/**
 * The thread that writes to SQLite: one batch is one transaction, each write in it stands or falls alone (a savepoint).
 * Durable before it answers: WAL with synchronous=FULL.
 */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { WriteResult } from './port.ts'

/** Writes, each a list of [sql, parameters, rows that must be touched]. */
export type BatchRequest = (readonly [sql: string, parameters: readonly unknown[], rows: number | undefined])[][]
/** A string: why that write could not be made. */
export type BatchReply = readonly (WriteResult | string)[]

const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
const SQLITE_CONSTRAINT_UNIQUE = 2067

const { file, busyTimeoutMs } = workerData as { file: string; busyTimeoutMs: number }
const db = new DatabaseSync(file, { timeout: busyTimeoutMs })
db.exec('PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864')

const prepared = new Map<string, { statement: StatementSync; returns: boolean }>()

parentPort!.on('message', (message: BatchRequest | 'close') => {
  if (message === 'close') {
    db.close()
    parentPort!.close()
    return
  }
  parentPort!.postMessage(runBatch(message))
})

/** One transaction for all; where that can't be (a full disk), one for each, so that one write does not take its neighbours along. */
function runBatch(batch: BatchRequest): BatchReply {
  const results = commit(batch)
  if (typeof results !== 'string') return results
  if (batch.length === 1) return [results]
  return batch.map((write) => {
    const alone = commit([write])
    return typeof alone === 'string' ? alone : alone[0]!
  })
}

function commit(batch: BatchRequest): WriteResult[] | string {
  try {
    db.exec('BEGIN IMMEDIATE')
    const results = batch.map(runWrite)
    db.exec('COMMIT')
    return results
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    return (error as Error).message
  }
}

function runWrite(write: BatchRequest[number]): WriteResult {
  db.exec('SAVEPOINT w')
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
      return undo({ ok: false, failedAt: i, reason: 'unique' })
    }
    if (expected !== undefined && touched !== expected) return undo({ ok: false, failedAt: i, reason: 'rows' })
  }
  db.exec('RELEASE w')
  return { ok: true, rows }
}

function undo(result: WriteResult): WriteResult {
  db.exec('ROLLBACK TO w; RELEASE w')
  return result
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

function isUniqueViolation(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode
  return code === SQLITE_CONSTRAINT_PRIMARYKEY || code === SQLITE_CONSTRAINT_UNIQUE
}
