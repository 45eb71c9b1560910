/**
 * A write on Postgres: one transaction on one connection.
 *
 * BEGIN and all statements go out in one flight (pg's pipeline mode); what each of them did decides over COMMIT or
 * ROLLBACK. So a write of any length takes two round trips and one fsync, which Postgres shares among those that commit
 * at the same time. READ COMMITTED is said each time, since a database may have another default: a statement must see
 * what was committed before it began, or the locks in locks.ts would not help.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, QueryResult } from 'pg'
import { DatabaseUnavailable, type Query, type Statement, type Write, type WriteResult } from './port.ts'

const UNIQUE_VIOLATION = '23505'
/** Serialization failure and deadlock: nothing was written, and trying again helps. */
const TRY_AGAIN = new Set<unknown>(['40001', '40P01'])
const TRIES = 6
const FIRST_PAUSE_MS = 10

/**
 * Rejects (DatabaseUnavailable) where the connection broke or the database refused. Nothing was written then, but where the
 * answer to COMMIT was lost: that may have happened, and a fenced write that is tried again finds its fence moved.
 */
export async function runWrite(client: ClientBase, write: Write): Promise<WriteResult> {
  // Asked once: who gives statements as a function has let go of what they say.
  const statements = typeof write === 'function' ? write() : write
  for (let attempt = 1; ; attempt++) {
    try {
      return await (needsNoTransaction(statements) ? runAlone(client, statements[0]!) : runTogether(client, statements))
    } catch (error) {
      if (attempt === TRIES || !TRY_AGAIN.has(codeOf(error))) {
        throw new DatabaseUnavailable(`The database refused a write: ${(error as Error).message}`, error)
      }
      await delay(FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random()))
    }
  }
}

function needsNoTransaction(statements: readonly Statement[]): boolean {
  return statements.length === 1 && statements[0]!.rows === undefined
}

async function runAlone(client: ClientBase, { query }: Statement): Promise<WriteResult> {
  try {
    return { ok: true, rows: [(await send(client, query)).rows] }
  } catch (error) {
    if (codeOf(error) !== UNIQUE_VIOLATION) throw error
    return { ok: false, failedAt: 0, reason: 'unique' }
  }
}

async function runTogether(client: ClientBase, statements: readonly Statement[]): Promise<WriteResult> {
  const [begun, ...outcomes] = await Promise.allSettled([
    client.query('begin isolation level read committed'),
    ...statements.map(({ query }) => send(client, query)),
  ])
  if (begun.status === 'rejected') throw begun.reason
  const failure = firstFailure(statements, outcomes)
  if (!failure) {
    await client.query('commit')
    return { ok: true, rows: outcomes.map((outcome) => (outcome as PromiseFulfilledResult<QueryResult>).value.rows) }
  }
  // Where the connection is gone, so is the transaction; the failure says more than this error would.
  await client.query('rollback').catch(() => {})
  if ('error' in failure) throw failure.error
  return failure
}

/** The first statement that did not what it had to. Those behind it ran, or were refused, in vain. */
function firstFailure(
  statements: readonly Statement[],
  outcomes: readonly PromiseSettledResult<QueryResult>[],
): Extract<WriteResult, { ok: false }> | { readonly error: unknown } | undefined {
  for (const [failedAt, outcome] of outcomes.entries()) {
    if (outcome.status === 'rejected') {
      if (codeOf(outcome.reason) !== UNIQUE_VIOLATION) return { error: outcome.reason }
      return { ok: false, failedAt, reason: 'unique' }
    }
    const expected = statements[failedAt]!.rows
    if (expected !== undefined && outcome.value.rowCount !== expected) return { ok: false, failedAt, reason: 'rows' }
  }
  return undefined
}

/** Sends one query. Text in Postgres can't hold a NUL: it becomes U+FFFD, which finds nothing where it is looked for. */
export function send(client: ClientBase, { sql, parameters }: Query): Promise<QueryResult> {
  return client.query(sql, parameters.map(withoutNul))
}

function withoutNul(value: unknown): unknown {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code
}
