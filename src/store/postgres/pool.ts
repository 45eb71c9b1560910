/**
 * The connection pool for Postgres. It has a maximum size and checks each connection before first use. A broken connection
 * or a database that can't be used for now becomes DatabaseUnavailable, here and in all callers.
 */
import pg from 'pg'
import type { Log } from '../../telemetry/log.ts'
import { DatabaseUnavailable } from '../port.ts'

/** Timeout for opening a connection, and for waiting until one is free. */
const CONNECT_TIMEOUT_MS = 10_000
/**
 * Session timeouts. No statement of ours runs for seconds, so one that takes this long waits for a lock that is not
 * released. The second setting ends a transaction whose node froze. Set by a statement, because connection poolers reject
 * these as startup parameters. A pooler may pass the session to other clients of this role and database; they set the same.
 */
const SESSION = 'set statement_timeout = 15000; set idle_in_transaction_session_timeout = 15000'
/** Timeout for a reply. After that we close the connection: the server has vanished or hangs. */
const ANSWER_TIMEOUT_MS = 20_000
const INT8 = 20
/** SQLSTATE of a read-only transaction: the primary has moved, and this connection leads to a standby. */
const READ_ONLY = '25006'
/** SQLSTATE classes of transient errors: connection, resources, operator intervention, system. */
const TRANSIENT = new Set(['08', '53', '57', '58'])

export interface PoolOptions {
  /** Maximum number of connections. */
  readonly size: number
  readonly log: Pick<Log, 'warn'>
}

export interface Pool {
  /** Lends a connection outside of any transaction. Rejects with DatabaseUnavailable. */
  connect(): Promise<pg.PoolClient>
  /** Takes a connection back, in any state. */
  release(client: pg.PoolClient): void
  /** Converts an error of a connection: DatabaseUnavailable if it is transient, otherwise the error itself, which is a bug. */
  explain(error: unknown): unknown
  /** Number of open and idle connections, and of callers that wait for one. */
  counts(): { readonly open: number; readonly idle: number; readonly waiting: number }
  /** Rejects new callers and waits for those that have or wait for a connection. */
  close(): Promise<void>
}

export function openPool(url: string, { size, log }: PoolOptions): Pool {
  const pool = new pg.Pool({
    ...connectionOptions(url),
    max: size,
    pipeline: true,
    query_timeout: ANSWER_TIMEOUT_MS,
    async onConnect(client) {
      // The query in progress fails by itself. Without a listener this event would end the process.
      client.on('error', (error) => log.warn({ err: error }, 'a connection to the database broke'))
      await client.query(SESSION)
      await refuseReadOnly(client)
    },
  })
  // Errors of idle connections. The listener above has already logged them.
  pool.on('error', () => {})
  /** Raised when the primary has moved: connections of an older generation lead to the former primary. */
  let generation = 0
  const generations = new WeakMap<pg.PoolClient, number>()
  pool.on('connect', (client) => generations.set(client, generation))
  const isOld = (client: pg.PoolClient) => generations.get(client) !== generation
  let closing: Promise<void> | undefined

  async function drain(): Promise<void> {
    // An ended pool does not serve callers that still wait for a connection, so serve them first.
    while (pool.waitingCount > 0 || pool.idleCount < pool.totalCount) await new Promise((done) => setTimeout(done, 5))
    await pool.end()
  }

  function explain(error: unknown): unknown {
    if (error instanceof pg.DatabaseError && error.code === READ_ONLY) generation++
    return isTransient(error)
      ? new DatabaseUnavailable(`The database can't be used now: ${reasonOf(error)}`, error)
      : error
  }

  return {
    async connect() {
      if (closing) throw new DatabaseUnavailable('The database is closed.')
      try {
        for (;;) {
          const client = await pool.connect()
          if (!isOld(client)) return client
          client.release(true)
        }
      } catch (error) {
        if ((error as Error).message !== 'timeout exceeded when trying to connect') {
          throw new DatabaseUnavailable(`The database can't be reached: ${reasonOf(error)}`, error)
        }
        const waited = `for ${CONNECT_TIMEOUT_MS / 1000} s`
        throw new DatabaseUnavailable(`Every connection to the database (${size}) was busy ${waited}.`, error)
      }
    },
    release(client) {
      // A broken connection, or one inside a transaction, is destroyed.
      client.release(client.getTransactionStatus() !== 'I' || isOld(client))
    },
    explain,
    counts: () => ({ open: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    close() {
      closing ??= drain()
      return closing
    },
  }
}

/** Options of every connection. `url`: as in openPostgres. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    fallback_application_name: 'errand',
    types: {
      // Times and counts are far below 2^53. By default pg returns them as strings, and `+` would concatenate.
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  }
}

/** Throws if the connection leads to a standby, as it may after a failover: its data is stale and it rejects writes. */
export async function refuseReadOnly(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only')
  if (rows[0]!.transaction_read_only === 'on') {
    throw new Error('it is read-only: a standby, or a primary set to read-only. Errand needs the primary.')
  }
}

/** The message of an error. If a host name has several addresses, the messages of all attempts. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return (error as Error).message
}

/** True for transient errors. An error that the server did not send means that the connection broke. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return true
  return error.code === READ_ONLY || TRANSIENT.has(error.code.slice(0, 2))
}
