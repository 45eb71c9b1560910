/**
 * The connections to Postgres: at most so many, each looked at before its first use. What breaks them, or comes from a
 * database that can't be used now, is DatabaseUnavailable here and everywhere behind it.
 */
import pg from 'pg'
import type { Log } from '../../telemetry/log.ts'
import { DatabaseUnavailable } from '../port.ts'

/** For a new connection, or a turn on one that is busy. */
const CONNECT_TIMEOUT_MS = 10_000
/**
 * No statement here works for seconds: one that takes so long waits for a lock that is not coming free. A transaction
 * whose node froze in the middle is ended as soon. Set by a statement, since poolers refuse them at the start; what a pooler
 * then hands on to others of this role and database says the same.
 */
const SESSION = 'set statement_timeout = 15000; set idle_in_transaction_session_timeout = 15000'
/** From a server that went away without a word, or stands still, no answer comes: then the connection is given up. */
const ANSWER_TIMEOUT_MS = 20_000
const INT8 = 20
/** The database has a new place: the one behind this connection only reads, as a standby does. */
const READ_ONLY = '25006'
/** Of SQLSTATE: connections, resources, the operator, the system. All of them pass. */
const PASSING = new Set(['08', '53', '57', '58'])

export interface PoolOptions {
  /** Connections at most. */
  readonly size: number
  readonly log: Pick<Log, 'warn'>
}

export interface Pool {
  /** Lends a connection outside of any transaction. Rejects with DatabaseUnavailable. */
  connect(): Promise<pg.PoolClient>
  /** Takes it back, in whatever state. */
  release(client: pg.PoolClient): void
  /** What went wrong on a connection: DatabaseUnavailable where that passes, else the error itself, which is a bug. */
  explain(error: unknown): unknown
  /** All, those that nobody uses, and who waits for one. */
  counts(): { readonly open: number; readonly idle: number; readonly waiting: number }
  /** Waits for what is under way, refuses what comes. */
  close(): Promise<void>
}

export function openPool(url: string, { size, log }: PoolOptions): Pool {
  const pool = new pg.Pool({
    ...connectionOptions(url),
    max: size,
    pipeline: true,
    query_timeout: ANSWER_TIMEOUT_MS,
    async onConnect(client) {
      // Who uses the connection hears of its end by the query that fails; without a listener it would end the process.
      client.on('error', (error) => log.warn({ err: error }, 'a connection to the database broke'))
      await client.query(SESSION)
      await refuseReadOnly(client)
    },
  })
  // Of connections that nobody uses; the listener above has told already.
  pool.on('error', () => {})
  /** Connections made before the database moved lead to where it was. */
  let generation = 0
  const generations = new WeakMap<pg.PoolClient, number>()
  pool.on('connect', (client) => generations.set(client, generation))
  const isOld = (client: pg.PoolClient) => generations.get(client) !== generation
  let closing: Promise<void> | undefined

  async function drain(): Promise<void> {
    // A pool that was ended serves nobody who still waits for a connection, so first nobody may.
    while (pool.waitingCount > 0 || pool.idleCount < pool.totalCount) await new Promise((done) => setTimeout(done, 5))
    await pool.end()
  }

  function explain(error: unknown): unknown {
    if (error instanceof pg.DatabaseError && error.code === READ_ONLY) generation++
    return passes(error) ? new DatabaseUnavailable(`The database can't be used now: ${reasonOf(error)}`, error) : error
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
        throw new DatabaseUnavailable(`Each of the ${size} connections to the database was busy ${waited}.`, error)
      }
    },
    release(client) {
      // A connection that broke, or is in the middle of a transaction, goes back to nobody.
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

/** What every connection has in common. `url`: as openPostgres takes it. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    fallback_application_name: 'errand',
    types: {
      // Times and counts: far below 2^53. As text, which is pg's default, they would add up like words.
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  }
}

/** After a fail-over the address may lead to a standby for a while: what that shows is old, and what it is sent is refused. */
export async function refuseReadOnly(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only')
  if (rows[0]!.transaction_read_only === 'on') {
    throw new Error('it only reads; it is a standby, or was made read-only. Errand needs the primary.')
  }
}

/** Where a name has several addresses, the error says nothing itself: each attempt's own does. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return (error as Error).message
}

/** What is no word of the server's is the connection's end. */
function passes(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return true
  return error.code === READ_ONLY || PASSING.has(error.code.slice(0, 2))
}
