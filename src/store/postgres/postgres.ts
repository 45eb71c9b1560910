/**
 * The database port on Postgres, for several nodes on one database. Reads and writes share a connection pool (pool.ts). Each
 * transaction runs for a project or for the server (transaction.ts); write.ts runs writes and schema.ts migrates the schema.
 */
import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Log } from '../../telemetry/log.ts'
import { type Database, DatabaseUnavailable } from '../port.ts'
import type { Tables } from '../tables.ts'
import { connectionOptions, openPool, type Pool, reasonOf } from './pool.ts'
import { SERVER } from './row-security.ts'
import { isRowSecurityEnforced, migratePostgres } from './schema.ts'
import { runRead, type Scope, scopeOf } from './transaction.ts'
import { runWrite } from './write.ts'

const DEFAULT_POOL_SIZE = 10

export interface PostgresOptions {
  /** Maximum number of connections. */
  readonly poolSize?: number
  readonly log: Pick<Log, 'warn'>
}

/**
 * Connects and brings the schema up to date. `url`: `postgres://user:password@host:5432/database?sslmode=verify-full`,
 * as node-postgres reads it. Throws if the database can't be reached or used. No message contains the password.
 */
export async function openPostgres(
  url: string,
  { poolSize = DEFAULT_POOL_SIZE, log }: PostgresOptions,
): Promise<Database> {
  const hasRowSecurity = await prepare(url)
  if (!hasRowSecurity) log.warn({}, NO_ROW_SECURITY)
  const pool = openPool(url, { size: poolSize, log })
  const close = () => pool.close()
  function seenBy(scope: Scope): Database {
    const query = readerFor(pool, scope)
    return {
      dialect: 'postgres',
      shared: true,
      hasRowSecurity,
      query,
      read: async (built) => (await query.executeQuery(built)).rows,
      async write(write) {
        const client = await pool.connect()
        try {
          return await runWrite(client, scope, write)
        } catch (error) {
          pool.explain(error)
          throw new DatabaseUnavailable(`The database refused a write: ${reasonOf(error)}`, error)
        } finally {
          pool.release(client)
        }
      },
      forProject: (projectId) => seenBy(scopeOf(projectId)),
      connections: pool.counts,
      close,
    }
  }
  return seenBy(SERVER)
}

/** Warning for a role that bypasses row-level security. Only the operator can change the role, so it has the SQL to run. */
export const NO_ROW_SECURITY =
  'The database role is a superuser or has BYPASSRLS, so the database does not separate projects; only the queries do. ' +
  "Use a role of its own: `create role errand login password '…'`, `create database errand owner errand encoding 'UTF8' template template0` " +
  '(docs/postgres.md says how to move an existing database).'

/** Migrates the schema on a separate connection without the pool's timeouts. Returns whether row-level security applies. */
async function prepare(url: string): Promise<boolean> {
  const client = new pg.Client(connectionOptions(url))
  // The query in progress fails by itself. Without a listener this event would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    await migratePostgres(client)
    return await isRowSecurityEnforced(client)
  } catch (error) {
    throw new Error(`The database ${nameOf(client)} can't be used: ${reasonOf(error)}`, { cause: error })
  } finally {
    await client.end().catch(() => {})
  }
}

function readerFor(pool: Pool, scope: Scope): Kysely<Tables> {
  const connect = async (): Promise<PostgresPoolClient> => {
    const client = await pool.connect()
    return {
      async query(sql: string, parameters: readonly unknown[]) {
        try {
          return await runRead(client, scope, { sql, parameters })
        } catch (error) {
          throw pool.explain(error)
        }
      },
      release: () => pool.release(client),
    } as never
  }
  return new Kysely({ dialect: new PostgresDialect({ pool: { connect, end: async () => {}, options: {} } }) })
}

/** The database's name and address, without the secrets of its URL. */
function nameOf({ host, port, database }: pg.Client): string {
  return `${database} at ${host.startsWith('/') ? host : `${host}:${port}`}`
}
