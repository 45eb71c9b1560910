/**
 * Postgres, for several nodes on one database: reads and writes share a bounded pool of connections. How a write is run
 * stands in postgres-write.ts, how the schema comes up to date in postgres-schema.ts.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Log } from '../telemetry/log.ts'
import { type Database, DatabaseUnavailable } from './port.ts'
import { migratePostgres } from './postgres-schema.ts'
import { runWrite, send } from './postgres-write.ts'
import type { Tables } from './tables.ts'

const DEFAULT_POOL_SIZE = 10
/** For a connection: a new one, or a turn on one that is busy. */
const CONNECT_TIMEOUT_MS = 30_000
/**
 * No statement here works for seconds: one that takes so long waits for a lock that is not coming free. A transaction
 * whose node froze in the middle is ended as soon. Set by a statement, since poolers refuse them at the start.
 */
const SESSION = 'set statement_timeout = 30000; set idle_in_transaction_session_timeout = 30000'
const INT8 = 20
const DRAIN_POLL_MS = 5

export interface PostgresOptions {
  /** Connections at most. */
  readonly poolSize?: number
  readonly log: Pick<Log, 'warn'>
}

/**
 * Connects and brings the schema up to date. `url`: `postgres://user:password@host:5432/database?sslmode=verify-full`,
 * as node-postgres reads it. Throws where the database can't be reached or used; never tells the password.
 */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Database> {
  const pool = openPool(url, options)
  let closing: Promise<void> | undefined

  async function connect(): Promise<pg.PoolClient> {
    if (closing) throw new DatabaseUnavailable('The database is closed.')
    return pool.connect().catch((error: Error) => {
      throw new DatabaseUnavailable(`The database can't be reached: ${reasonOf(error)}`, error)
    })
  }

  async function drain(): Promise<void> {
    // A pool that was ended serves nobody who still waits for a connection, so first nobody may.
    while (pool.waitingCount > 0 || pool.idleCount < pool.totalCount) await delay(DRAIN_POLL_MS)
    await pool.end()
  }

  const query = new Kysely<Tables>({
    dialect: new PostgresDialect({
      pool: { connect: async () => forReads(await connect()), end: async () => {}, options: {} },
    }),
  })
  try {
    await withClient(connect, (client) => migratePostgres(client, query))
  } catch (error) {
    await pool.end()
    throw new Error(`The database ${nameOf(url)} can't be used: ${(error as Error).message}`, { cause: error })
  }
  return {
    dialect: 'postgres',
    query,
    write: (write) => withClient(connect, (client) => runWrite(client, write)),
    close() {
      closing ??= drain()
      return closing
    },
  }
}

function openPool(url: string, { poolSize = DEFAULT_POOL_SIZE, log }: PostgresOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    pipeline: true,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'errand',
    types: {
      // Times and counts: far below 2^53. As text, which is pg's default, they would add up like words.
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
    async onConnect(client) {
      // Who uses the connection hears of its end by the query that fails; without a listener it would end the process.
      client.on('error', (error) => log.warn({ err: error }, 'a connection to the database broke'))
      await client.query(SESSION)
    },
  })
  // Of connections that nobody uses; the listener above has told already.
  pool.on('error', () => {})
  return pool
}

async function withClient<T>(
  connect: () => Promise<pg.PoolClient>,
  use: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect()
  try {
    return await use(client)
  } finally {
    // A connection that broke, or is in the middle of a transaction, goes back to nobody.
    client.release(client.getTransactionStatus() !== 'I')
  }
}

function forReads(client: pg.PoolClient): PostgresPoolClient {
  return {
    // Kysely would also send cursors, for streams; nothing here streams.
    query: ((sql: string, parameters: readonly unknown[]) => send(client, { sql, parameters })) as never,
    release: () => client.release(),
  }
}

/** The database without what is secret in its address, as the driver reads it. */
function nameOf(url: string): string {
  const { host, port, database } = new pg.Client(url)
  return `${database} at ${host.startsWith('/') ? host : `${host}:${port}`}`
}

/** Where a name has several addresses, the error says nothing itself: each attempt's own does. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return (error as Error).message
}
