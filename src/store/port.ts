/**
 * The port to the database. Reads go through Kysely. A write is a list of statements that all succeed or have no effect.
 * The same code serves SQLite and Postgres.
 */
import type { CompiledQuery, Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/** SQL text with its parameters, as Kysely's `compile()` returns it. */
export interface Query {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

/** One statement of a write. */
export interface Statement {
  readonly query: Query
  /** Number of rows it must affect. With any other number the whole write is rolled back. */
  readonly rows?: number
  /** The write is valid only if this statement affects a row. Otherwise another writer was faster. See `fenced`. */
  readonly fence?: true
}

/** A statement that must affect exactly one row: it checks the writer's epoch, or the version that the writer read. */
export function fenced(query: Query): Statement {
  return { query, rows: 1, fence: true }
}

export interface WriteDone {
  readonly ok: true
  /** Rows that each statement returned (`RETURNING`), in order. */
  readonly rows: readonly (readonly Readonly<Record<string, unknown>>[])[]
}

/** The write was rolled back. */
export interface WriteFailure {
  readonly ok: false
  /** The first statement that failed, from 0. */
  readonly failedAt: number
  /**
   * `fence`: the fenced statement affected no row, so another writer was faster. `unique`: a unique key is taken.
   * `rows`: another statement affected a wrong number of rows.
   */
  readonly reason: 'fence' | 'unique' | 'rows'
  /** SQL text of that statement, without its parameters. */
  readonly sql: string
}

export type WriteResult = WriteDone | WriteFailure

/** Describes a rollback. `unmet` is the condition that the statement at that index did not meet. */
export function describeFailure(
  statements: readonly Statement[],
  failedAt: number,
  unmet: 'rows' | 'unique',
): WriteFailure {
  const { query, fence } = statements[failedAt]!
  return { ok: false, failedAt, reason: unmet === 'rows' && fence ? 'fence' : unmet, sql: query.sql }
}

/** Throws if the write was rolled back. For writes that only a defect can roll back. */
export function assertMade(result: WriteResult): asserts result is WriteDone {
  if (!result.ok) throw unexpectedFailure(result)
}

/** Returns true if the write was made, and false if it was rolled back for an expected reason. Throws for any other reason: a defect. */
export function wasMade(result: WriteResult, ...expected: readonly WriteFailure['reason'][]): result is WriteDone {
  if (result.ok) return true
  if (expected.includes(result.reason)) return false
  throw unexpectedFailure(result)
}

/** An error that names the statement, without its parameters, which may be secret. */
export function unexpectedFailure({ failedAt, reason, sql }: WriteFailure): Error {
  const why = {
    fence: 'is fenced and affected no row',
    rows: 'affected a wrong number of rows',
    unique: 'violated a unique key',
  }[reason]
  return new Error(`A write was rolled back: statement ${failedAt} ${why}: ${sql}`)
}

/** Statements, or a function that returns them immediately before they are sent. */
export type Write = readonly Statement[] | (() => readonly Statement[])

export interface Database {
  readonly dialect: 'sqlite' | 'postgres'
  /** True if processes on other machines may use this database too, with sandboxes that this machine can't reach. */
  readonly shared: boolean
  /** True if the database itself separates projects, by row-level security. */
  readonly hasRowSecurity: boolean
  /** The query builder. Its `execute` is only for reads. */
  readonly query: Kysely<Tables>
  /** Runs a built query (fixed-query.ts) without the query builder's overhead. */
  read<Row>(query: CompiledQuery<Row>): Promise<readonly Row[]>
  /**
   * Runs a write as one transaction, or as part of one: writes that arrive during a commit share the next. Durable when it
   * resolves. Rejects with DatabaseUnavailable if the database can't be reached or is full.
   */
  write(write: Write): Promise<WriteResult>
  /**
   * The same database restricted to one project, for everything done on behalf of its callers. With row-level security,
   * a query that omits the project still can't read or write another project's rows.
   */
  forProject(projectId: string): Database
  /** Connections of the pool, if there is one: all, idle, and callers that wait for one. */
  connections?(): { readonly open: number; readonly idle: number; readonly waiting: number }
  /**
   * Erases some of what deleted rows left in the database's files, and frees the space. Resolves with true if more is left.
   * Absent if the database does this by itself. Rejects with DatabaseUnavailable.
   */
  reclaim?(): Promise<boolean>
  close(): Promise<void>
}

/** For code that only works for callers: it must name the project before it can query anything. */
export type ProjectDatabases = Pick<Database, 'forProject'>

/**
 * The database is full or can't be reached. The write had no effect, unless the connection broke after the commit was sent:
 * then the outcome is unknown until it is looked up.
 */
export class DatabaseUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'DatabaseUnavailable'
  }
}
