/**
 * The simulated database, an implementation of src/store/port.ts: the real SQL on an in-memory SQLite, reached through
 * a simulated network.
 *
 * write ─▶ statements are built ─▶ (network) ─▶ transaction ─▶ (network) ─▶ answer
 *
 * Requests and answers can be delayed or lost; the answer of a committed transaction can be lost too. A request that a
 * node sent before it died or was paused still arrives. The database's clock is true time, independent of the nodes'
 * clocks.
 */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import {
  type Database,
  DatabaseUnavailable,
  type Query,
  type Statement,
  type WriteResult,
} from '../../src/store/port.ts'
import { type BatchRequest, createBatchRunner } from '../../src/store/sqlite/batch.ts'
import { unpackResult } from '../../src/store/sqlite/packet.ts'
import { migrate } from '../../src/store/sqlite/sqlite.ts'
import type { Tables } from '../../src/store/tables.ts'
import type { Process, Scheduler } from './scheduler.ts'

/** Delays and possible loss of one request in the simulated network. */
export interface Passage {
  readonly thereMs: number
  readonly backMs: number
  /** The direction in which the request is lost, if any. The request then fails after `backMs`. */
  readonly lost?: 'there' | 'back'
}

/** A change that the database's triggers saw, independent of the statements that made it. */
export type Witnessed =
  | { readonly kind: 'row'; readonly row: RowState }
  | { readonly kind: 'event'; readonly id: string; readonly seq: number; readonly type: string; readonly data: string }
  | { readonly kind: 'gone'; readonly id: string }

export interface RowState {
  readonly id: string
  readonly projectId: string
  readonly status: string
  readonly stage: string
  readonly epoch: number
  readonly attempts: number
  readonly owner: string | null
  readonly leaseUntil: number
  readonly lastSeq: number
}

export interface WorldDatabase {
  /** Connects one node to the database. Calls `passage` for each request. */
  connect(node: Process, passage: () => Passage): Database
  /** Reads rows immediately, bypassing the network, for checks from outside the world. */
  look(sql: string, ...parameters: SQLInputValue[]): readonly Readonly<Record<string, unknown>>[]
}

/** A planted fault: changes a statement on its way to the database. */
export type Tamper = (sql: string, parameters: readonly unknown[]) => Query

export interface WorldDatabaseOptions {
  readonly scheduler: Scheduler
  /** The dialect that the engine sees. Nodes with separate sandbox hosts need Postgres. */
  readonly dialect: Database['dialect']
  /** Called after each committed transaction. */
  readonly onCommit: (by: Process, seen: readonly Witnessed[]) => void
  readonly tamper?: Tamper
}

const ROW = ['id', 'project_id', 'status', 'stage', 'epoch', 'attempts', 'lease_owner', 'lease_until', 'last_seq']

/** SQL that differs between Postgres and SQLite. Postgres locks become no-ops, because SQLite has a single writer. */
const IN_SQLITE: readonly (readonly [postgres: string, sqlite: string])[] = [
  ['(extract(epoch from clock_timestamp()) * 1000)::bigint', "cast(unixepoch('subsec') * 1000 as integer)"],
  [' for update skip locked', ''],
  ['pg_advisory_xact_lock(?, hashtext(?))', 'coalesce(?, ?)'],
  ['select jsonb_array_elements_text(?::jsonb)', 'select value from json_each(?)'],
]

/** One database for all worlds, because opening and migrating it takes longer than most worlds. */
const file = openFile()

function openFile() {
  const db = new DatabaseSync(':memory:')
  migrate(db, 'in memory')
  const seen: Witnessed[] = []
  const clock = { now: () => 0 }
  // Replaces SQLite's clock, because leases depend on it.
  db.function('unixepoch', { varargs: true }, () => clock.now() / 1_000)
  db.function('saw_row', { varargs: true }, (...values) => {
    seen.push({ kind: 'row', row: toRow(values) })
    return null
  })
  db.function('saw_event', (id, seq, type, data) => {
    seen.push({ kind: 'event', id: String(id), seq: Number(seq), type: String(type), data: String(data) })
    return null
  })
  db.function('saw_gone', (id) => {
    seen.push({ kind: 'gone', id: String(id) })
    return null
  })
  const row = ROW.map((column) => `new.${column}`).join(', ')
  db.exec(`
    create temp trigger row_made after insert on interactions begin select saw_row(${row}); end;
    create temp trigger row_changed after update on interactions begin select saw_row(${row}); end;
    create temp trigger row_gone after delete on interactions begin select saw_gone(old.id); end;
    create temp trigger event_made after insert on events
      begin select saw_event(new.interaction_id, new.seq, new.type, new.data); end;
  `)
  const tables = db.prepare("select name from sqlite_master where type = 'table' and name <> 'migrations'").all()
  return { db, clock, seen, runBatch: createBatchRunner(db), tables: tables.map(({ name }) => String(name)) }
}

function toRow([id, projectId, status, stage, epoch, attempts, owner, leaseUntil, lastSeq]: unknown[]): RowState {
  return { id, projectId, status, stage, epoch, attempts, owner, leaseUntil, lastSeq } as RowState
}

/** Opens the database for one world: deletes all rows of the previous world. */
export function openWorldDatabase({ scheduler, dialect, onCommit, tamper }: WorldDatabaseOptions): WorldDatabase {
  const { db, clock, seen, runBatch, tables } = file
  const server: Process = { name: 'database', state: 'running', skewMs: 0 }
  const prepared = new Map<string, StatementSync>()
  const translated = new Map<string, string>()
  clock.now = () => scheduler.now
  for (const table of tables) db.exec(`delete from "${table}"`)
  seen.length = 0

  function look(sql: string, ...parameters: SQLInputValue[]) {
    const statement = prepared.get(sql) ?? db.prepare(sql)
    prepared.set(sql, statement)
    return statement.all(...parameters)
  }

  /** The statement as the database receives it: translated to SQLite, with the planted fault. */
  function received({ sql, parameters }: Query): Query {
    const known = translated.get(sql) ?? IN_SQLITE.reduce((text, [said, meant]) => text.replaceAll(said, meant), sql)
    translated.set(sql, known)
    return tamper?.(known, parameters) ?? { sql: known, parameters }
  }

  function commit(by: Process, statements: readonly Statement[]): WriteResult {
    const write: BatchRequest[number] = statements.map(({ query, rows }) => {
      const { sql, parameters } = received(query)
      return [sql, parameters, rows]
    })
    seen.length = 0
    const result = unpackResult(runBatch([write])[0]!, statements)
    if (typeof result === 'string') throw new Error(`the database refused a write: ${result}`)
    if (result.ok && seen.length > 0) onCommit(by, [...seen])
    return result
  }

  /** Sends one request over the network. `act` runs at the database. */
  function request<T>(node: Process, what: string, { thereMs, backMs, lost }: Passage, act: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const fail = (error: unknown) => scheduler.schedule(node, backMs, `${what}: failed`, () => reject(error))
    if (lost === 'there') {
      fail(new DatabaseUnavailable('The database is unreachable.'))
      return promise
    }
    scheduler.schedule(server, thereMs, `${what} of ${node.name}`, () => {
      try {
        const answer = act()
        if (lost === 'back') fail(new DatabaseUnavailable('The connection to the database broke.'))
        else scheduler.schedule(node, backMs, `${what}: answer`, () => resolve(answer))
      } catch (error) {
        fail(error)
      }
    })
    return promise
  }

  return {
    look,
    connect(node, passage) {
      const read = (sql: string, parameters: readonly unknown[]) =>
        request(node, 'read', passage(), () => {
          const query = received({ sql, parameters })
          return look(query.sql, ...(query.parameters as SQLInputValue[]))
        })
      const query = new Kysely<Tables>({
        dialect: {
          createAdapter: () => new SqliteAdapter(),
          createDriver: () => createDriver(read),
          createIntrospector: (kysely) => new SqliteIntrospector(kysely),
          createQueryCompiler: () => new SqliteQueryCompiler(),
        },
      })
      const database: Database = {
        dialect,
        shared: dialect === 'postgres',
        hasRowSecurity: false,
        query,
        read: async (built) => (await query.executeQuery(built)).rows,
        async write(write) {
          // A write given as a function builds its statements only when a connection is available.
          await scheduler.sleep(node, passage().thereMs, 'connection')
          const statements = typeof write === 'function' ? write() : write
          return request(node, 'write', passage(), () => commit(node, statements))
        },
        forProject: () => database,
        async close() {},
      }
      return database
    },
  }
}

function createDriver(read: (sql: string, parameters: readonly unknown[]) => Promise<readonly unknown[]>): Driver {
  const refused = async () => {
    throw new Error('a write goes through the port')
  }
  const connection: DatabaseConnection = {
    async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
      return { rows: (await read(sql, parameters)) as R[] }
    },
    streamQuery() {
      throw new Error('nothing streams')
    },
  }
  return {
    async init() {},
    async acquireConnection() {
      return connection
    },
    beginTransaction: refused,
    commitTransaction: refused,
    rollbackTransaction: refused,
    async releaseConnection() {},
    async destroy() {},
  }
}
