/**
 * The port to the database. Reads go through Kysely; a write is a list of statements that happen together or not at
 * all. Both run on SQLite and on Postgres from one text.
 */
import type { CompiledQuery, Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/** SQL text with its parameters: what Kysely's `compile()` gives. */
export interface Query {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

/** One statement of a write. */
export interface Statement {
  readonly query: Query
  /** How many rows it must touch; any other count undoes the whole write. */
  readonly rows?: number
  /** The write depends on a condition of this statement: where it touches no row, the writer came too late. See `fenced`. */
  readonly fence?: true
}

/** A statement that must find its one row: the writer's right to write, or the version that it read. */
export function fenced(query: Query): Statement {
  return { query, rows: 1, fence: true }
}

export interface WriteDone {
  readonly ok: true
  /** What each statement returned (`RETURNING`), in order. */
  readonly rows: readonly (readonly Readonly<Record<string, unknown>>[])[]
}

/** Nothing of the write was made. */
export interface WriteFailure {
  readonly ok: false
  /** The first statement that failed, from 0. */
  readonly failedAt: number
  /**
   * `fence`: a statement that holds the fence touched no row, so somebody else wrote first. `unique`: a unique key is taken.
   * `rows`: another statement touched a wrong number of rows.
   */
  readonly reason: 'fence' | 'unique' | 'rows'
  /** Text of that statement, without its parameters. */
  readonly sql: string
}

export type WriteResult = WriteDone | WriteFailure

/** `unmet`: what the database saw of the statement at that index. */
export function describeFailure(
  statements: readonly Statement[],
  failedAt: number,
  unmet: 'rows' | 'unique',
): WriteFailure {
  const { query, fence } = statements[failedAt]!
  return { ok: false, failedAt, reason: unmet === 'rows' && fence ? 'fence' : unmet, sql: query.sql }
}

/** Throws where the write was undone: for one that nothing but a defect can undo. */
export function assertMade(result: WriteResult): asserts result is WriteDone {
  if (!result.ok) throw unexpectedFailure(result)
}

/** True where the write was made, false where it was undone for an expected reason. Throws where it was for another one: a defect. */
export function wasMade(result: WriteResult, ...expected: readonly WriteFailure['reason'][]): result is WriteDone {
  if (result.ok) return true
  if (expected.includes(result.reason)) return false
  throw unexpectedFailure(result)
}

/** An error that names the statement; it has no parameters, which may be secret. */
export function unexpectedFailure({ failedAt, reason, sql }: WriteFailure): Error {
  const why = {
    fence: 'touched no row, though it holds the fence',
    rows: 'touched another number of rows than it had to',
    unique: 'broke a unique key',
  }[reason]
  return new Error(`A write was undone: its statement ${failedAt} ${why}: ${sql}`)
}

/** Statements, or a function that gives them at the last moment before they are sent. */
export type Write = readonly Statement[] | (() => readonly Statement[])

export interface Database {
  readonly dialect: 'sqlite' | 'postgres'
  /** Whether processes on other machines may use this database too, with sandboxes that this machine can't reach. */
  readonly shared: boolean
  /** Whether the database keeps projects apart itself, by row-level security. */
  readonly walled: boolean
  /** The query builder; its own `execute` is for reads. */
  readonly query: Kysely<Tables>
  /** The rows that a built query (fixed-query.ts) reads, by the shortest way there is. */
  read<Row>(query: CompiledQuery<Row>): Promise<readonly Row[]>
  /**
   * Runs a write as one transaction (or as part of one: writes that arrive while a commit is under way share the next).
   * Durable when it resolves. Rejects (DatabaseUnavailable) where the database can't be reached or is full.
   */
  write(write: Write): Promise<WriteResult>
  /**
   * The same database as that project sees it: for all that is done because a caller of the project asked. Where the
   * database is `walled`, a query that forgets the project finds none of another's rows, and can't write any.
   */
  forProject(projectId: string): Database
  /** Of the pool, where there is one: all, those that nobody uses, and who waits for one. */
  connections?(): { readonly open: number; readonly idle: number; readonly waiting: number }
  /**
   * Removes some of what deleted rows left in the database's files, and gives that space back. Resolves with whether more is left.
   * Absent if the database does that by itself. Rejects with DatabaseUnavailable.
   */
  reclaim?(): Promise<boolean>
  close(): Promise<void>
}

/** For rooms that work for callers alone: nothing can be asked before the project is named. */
export type ProjectDatabases = Pick<Database, 'forProject'>

/**
 * The database is full or out of reach now. What was to be written was not, but where the connection broke after the commit
 * was sent: then nobody can say, until it is looked up.
 */
export class DatabaseUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'DatabaseUnavailable'
  }
}
