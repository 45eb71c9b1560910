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

/** One statement of a write. `rows`: how many rows it must touch; any other count undoes the whole write. */
export interface Statement {
  readonly query: Query
  readonly rows?: number
}

export type WriteResult =
  | {
      readonly ok: true
      /** What each statement returned (`RETURNING`), in order. */
      readonly rows: readonly (readonly Readonly<Record<string, unknown>>[])[]
    }
  | {
      readonly ok: false
      /** Which statement touched another number of rows than it had to, or broke a unique key. */
      readonly failedAt: number
      readonly reason: 'rows' | 'unique'
    }

/** Statements, or a function that gives them at the last moment before they are sent. */
export type Write = readonly Statement[] | (() => readonly Statement[])

export interface Database {
  readonly dialect: 'sqlite' | 'postgres'
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
