/**
 * Postgres, for several nodes on one database: reads and writes share a bounded pool of connections (postgres-pool.ts).
 * Whom a transaction is for stands in postgres-transaction.ts, how a write is run in postgres-write.ts, how the schema comes
 * up to date in postgres-schema.ts.
 */
import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Log } from '../../telemetry/log.ts'
import { type Database, DatabaseUnavailable } from '../port.ts'
import type { Tables } from '../tables.ts'
import { connectionOptions, openPool, type Pool, reasonOf } from './pool.ts'
import { SERVER } from './row-security.ts'
import { isWalled, migratePostgres } from './schema.ts'
import { runRead, type Scope, scopeOf } from './transaction.ts'
import { runWrite } from './write.ts'

const DEFAULT_POOL_SIZE = 10

export interface PostgresOptions {
  /** Connections at most. */
  readonly poolSize?: number
  readonly log: Pick<Log, 'warn'>
}

/**
 * Connects and brings the schema up to date. `url`: `postgres://user:password@host:5432/database?sslmode=verify-full`,
 * as node-postgres reads it. Throws where the database can't be reached or used; never tells the password.
 */
export async function openPostgres(
  url: string,
  { poolSize = DEFAULT_POOL_SIZE, log }: PostgresOptions,
): Promise<Database> {
  const walled = await prepare(url)
  if (!walled) log.warn({}, NO_WALL)
  const pool = openPool(url, { size: poolSize, log })
  const close = () => pool.close()
  function seenBy(scope: Scope): Database {
    const query = readerFor(pool, scope)
    return {
      dialect: 'postgres',
      shared: true,
      walled,
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

/** The SQL is the operator's to run: whoever may pass row-level security by can't be made to heed it. */
export const NO_WALL =
  'The database role is a superuser, or has BYPASSRLS, so the database does not keep projects apart; only the queries do. ' +
  "Use a role of its own: `create role errand login password '…'`, `create database errand owner errand encoding 'UTF8' template template0` " +
  '(docs/postgres.md says how to move an existing database).'

/** On a connection of its own, since a migration may take longer than anything else may. */
async function prepare(url: string): Promise<boolean> {
  const client = new pg.Client(connectionOptions(url))
  // Whoever waits for an answer is told; without a listener it would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    await migratePostgres(client)
    return await isWalled(client)
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

/** The database without what is secret in its address, as the driver reads it. */
function nameOf({ host, port, database }: pg.Client): string {
  return `${database} at ${host.startsWith('/') ? host : `${host}:${port}`}`
}
