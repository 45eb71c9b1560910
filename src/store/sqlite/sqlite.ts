/**
 * The database port on SQLite, in the data directory. Reads run on this thread: they are short and come from the page cache.
 * Writes run on a thread of their own, because an fsync on this thread would block every stream.
 *
 * Group commit: writes that arrive during a commit wait and share the next one; there is never more than one under way. A
 * batch at the end of an event-loop tick is faster than a timer of 1-5 ms, and seven times as fast as one commit a row.
 */
import { chmodSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { Kysely, SqliteDialect } from 'kysely'
import { compileCacheEnv } from '../../runtime/compile-cache.ts'
import type { Emit } from '../../telemetry/events.ts'
import { MIGRATIONS, newerSchema } from '../migrations/migrations.ts'
import { type Database, DatabaseUnavailable, type Statement, type Write, type WriteResult } from '../port.ts'
import type { Tables } from '../tables.ts'
import { createPacker, type PackedReply, unpackResult } from './packet.ts'
import type { ReclaimReply } from './reclaim.ts'

const BUSY_TIMEOUT_MS = 10_000
/** Primary result code: https://www.sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5

/** Opens the database file; creates and migrates it if needed. Throws if the file can't be used. */
export async function openSqlite(file: string, emit?: Emit): Promise<Database> {
  prepareFile(file)
  const reader = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  // No mmap_size: SQLite unmaps the file after every commit, which doubles the cost of a busy server's short reads.
  reader.exec('PRAGMA query_only = 1; PRAGMA cache_size = -16384')
  const prepared = preparing(reader)
  const query = new Kysely<Tables>({ dialect: new SqliteDialect({ database: prepared }) })
  const writer = openWriter(file, emit)
  const database: Database = {
    dialect: 'sqlite',
    shared: false,
    hasRowSecurity: false,
    query,
    read: async ({ sql, parameters }) => prepared.prepare(sql).all(parameters) as never[],
    write: writer.write,
    reclaim: writer.reclaim,
    forProject: () => database,
    async close() {
      await writer.close()
      if (reader.isOpen) reader.close()
    },
  }
  return database
}

/** Creates the file, enables WAL and migrates the schema. `auto_vacuum` has no effect once the file has tables. */
function prepareFile(file: string): void {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    chmodSync(file, 0o600)
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA secure_delete = ON')
    enableWal(db)
    migrate(db, file)
  } finally {
    db.close()
  }
}

/**
 * Enables WAL, for which SQLite needs an exclusive lock. If two processes try at the same time, SQLite refuses one of them
 * immediately, without its busy handler (they would wait for each other). So we retry for as long as for any other lock.
 */
function enableWal(db: DatabaseSync): void {
  const until = performance.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      db.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_BUSY || performance.now() > until) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

/** Migrates the schema under SQLite's own lock, which also covers other processes. `name` is for error messages. */
export function migrate(db: DatabaseSync, name: string): void {
  db.exec('BEGIN IMMEDIATE')
  db.exec('CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at INTEGER NOT NULL)')
  const done = new Set(
    db
      .prepare('SELECT name FROM migrations')
      .all()
      .map((row) => String(row.name)),
  )
  const builder = new Kysely<Tables>({ dialect: new SqliteDialect({ database: preparing(db) }) })
  const newer = newerSchema(done)
  if (newer) throw new Error(`The database ${name} can't be used: ${newer}`)
  for (const migration of MIGRATIONS) {
    if (done.has(migration.name)) continue
    for (const statement of migration.statements(builder, 'sqlite')) {
      db.prepare(statement.sql).run(...(statement.parameters as SQLInputValue[]))
    }
    db.prepare('INSERT INTO migrations VALUES (?, ?)').run(migration.name, Date.now())
  }
  db.exec('COMMIT')
}

/** Adapts node:sqlite to Kysely's SQLite dialect, and prepares each SQL text once. */
function preparing(db: DatabaseSync) {
  const prepared = new Map<string, ReturnType<typeof adapt>>()
  const adapt = (statement: StatementSync) => ({
    reader: statement.columns().length > 0,
    all: (parameters: readonly unknown[]) => statement.all(...(parameters as SQLInputValue[])),
    run: (parameters: readonly unknown[]) => statement.run(...(parameters as SQLInputValue[])),
    iterate: (parameters: readonly unknown[]) => statement.iterate(...(parameters as SQLInputValue[])),
  })
  return {
    close: () => db.close(),
    prepare(sql: string) {
      let statement = prepared.get(sql)
      if (!statement) {
        if (prepared.size >= 500) prepared.clear()
        statement = adapt(db.prepare(sql))
        prepared.set(sql, statement)
      }
      return statement
    },
  }
}

interface Pending {
  readonly write: Write
  readonly resolve: (result: WriteResult) => void
  readonly reject: (error: Error) => void
}

interface Sent extends Pick<Pending, 'resolve' | 'reject'> {
  readonly statements: readonly Statement[]
}

function openWriter(file: string, emit?: Emit) {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./writer.${extension}`, import.meta.url), {
    workerData: { file, busyTimeoutMs: BUSY_TIMEOUT_MS },
    env: compileCacheEnv(),
  })
  const pack = createPacker()
  let waiting: Pending[] = []
  let inFlight: Sent[] | undefined
  let scheduled = false
  let broken: Error | undefined
  const idle: (() => void)[] = []
  let reclaiming: { resolve: (reply: ReclaimReply) => void; reject: (error: Error) => void } | undefined

  worker.on('message', (reply: PackedReply | ReclaimReply) => {
    if (!Array.isArray(reply)) {
      reclaiming?.resolve(reply as ReclaimReply)
      return
    }
    const batch = inFlight ?? []
    inFlight = undefined
    for (const [i, pending] of batch.entries()) {
      const result = unpackResult(reply[i]!, pending.statements)
      if (typeof result === 'string') pending.reject(new DatabaseUnavailable(`The database refused a write: ${result}`))
      else pending.resolve(result)
    }
    schedule()
  })
  worker.on('error', fail)
  worker.on('exit', () => fail(new DatabaseUnavailable('The database is closed.')))

  function fail(error: Error): void {
    broken ??= error
    for (const pending of [...(inFlight ?? []), ...waiting]) pending.reject(broken)
    reclaiming?.reject(broken)
    inFlight = undefined
    waiting = []
    schedule()
  }

  function schedule(): void {
    if (inFlight || scheduled) return
    if (waiting.length === 0) {
      for (const resolve of idle.splice(0)) resolve()
      return
    }
    scheduled = true
    setImmediate(send)
  }

  /** Sends all waiting writes. A write given as a function is called only now, so that fragments could be coalesced meanwhile. */
  function send(): void {
    scheduled = false
    const batch: Sent[] = []
    const writes: (readonly Statement[])[] = []
    for (const { write, resolve, reject } of waiting) {
      try {
        const statements = typeof write === 'function' ? write() : write
        writes.push(statements)
        batch.push({ statements, resolve, reject })
      } catch (error) {
        reject(error as Error)
      }
    }
    waiting = []
    if (batch.length > 0) {
      inFlight = batch
      worker.postMessage(pack(writes))
      emit?.({ type: 'database_committed', writes: batch.length })
    } else schedule()
  }

  return {
    write(write: Write): Promise<WriteResult> {
      if (broken) return Promise.reject(broken)
      return new Promise((resolve, reject) => {
        waiting.push({ write, resolve, reject })
        schedule()
      })
    },
    async reclaim(): Promise<boolean> {
      if (broken) throw broken
      const reply = await new Promise<ReclaimReply>((resolve, reject) => {
        reclaiming = { resolve, reject }
        worker.postMessage('reclaim')
      })
      if (typeof reply === 'object') throw new DatabaseUnavailable(`The database refused to shrink: ${reply.problem}`)
      return reply
    },
    async close(): Promise<void> {
      if (inFlight || scheduled || waiting.length > 0) await new Promise<void>((resolve) => idle.push(resolve))
      if (broken) return
      broken = new DatabaseUnavailable('The database is closed.')
      const exited = new Promise((resolve) => worker.once('exit', resolve))
      worker.postMessage('close')
      await exited
    },
  }
}
