/**
 * Runs a write on Postgres: one transaction on one connection.
 *
 * BEGIN and all statements are sent together (pg's pipeline mode); their results decide between COMMIT and ROLLBACK. So a
 * write of any length takes two round trips and one fsync, which Postgres shares among concurrent commits. If no statement
 * requires a number of rows, COMMIT is sent with them, and the write takes one round trip.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, QueryResult } from 'pg'
import { describeFailure, type Statement, type Write, type WriteFailure, type WriteResult } from '../port.ts'
import { begin, type Scope, send } from './transaction.ts'

const UNIQUE_VIOLATION = '23505'
/** Serialization failure and deadlock. Nothing was written, and a retry helps. */
const TRY_AGAIN = new Set<unknown>(['40001', '40P01'])
const TRIES = 6
const FIRST_PAUSE_MS = 10

/**
 * Rejects with the driver's error if the connection broke or the database refused the write. Nothing was written then, unless
 * the reply to COMMIT was lost. In that case the write may have happened; a retry of a fenced write then fails at its fence.
 */
export async function runWrite(client: ClientBase, scope: Scope, write: Write): Promise<WriteResult> {
  // Called only once: after that, the caller no longer has the content of the statements.
  const statements = typeof write === 'function' ? write() : write
  for (let attempt = 1; ; attempt++) {
    try {
      return await runOnce(client, scope, statements)
    } catch (error) {
      if (attempt === TRIES || !TRY_AGAIN.has(codeOf(error))) throw error
      await delay(FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random()))
    }
  }
}

async function runOnce(client: ClientBase, scope: Scope, statements: readonly Statement[]): Promise<WriteResult> {
  const decided = statements.every(({ rows }) => rows === undefined)
  const flight = [
    client.query(begin(scope)),
    ...statements.map(({ query }) => send(client, query)),
    // After a failed statement Postgres treats COMMIT as ROLLBACK.
    ...(decided ? [client.query('commit')] : []),
  ]
  const [begun, ...outcomes] = await Promise.allSettled(flight)
  if (begun!.status === 'rejected') throw begun!.reason
  const committed = decided ? outcomes.pop() : undefined
  const failure = firstFailure(statements, outcomes)
  if (!failure) {
    if (committed?.status === 'rejected') throw committed.reason
    if (!decided) await client.query('commit')
    return { ok: true, rows: outcomes.map((outcome) => (outcome as PromiseFulfilledResult<QueryResult>).value.rows) }
  }
  // If the connection is broken the transaction is gone too; `failure` is the more useful error.
  if (!decided) await client.query('rollback').catch(() => {})
  if ('error' in failure) throw failure.error
  return failure
}

/** The first statement that failed or affected a wrong number of rows. */
function firstFailure(
  statements: readonly Statement[],
  outcomes: readonly PromiseSettledResult<QueryResult>[],
): WriteFailure | { readonly error: unknown } | undefined {
  for (const [failedAt, outcome] of outcomes.entries()) {
    if (outcome.status === 'rejected') {
      if (codeOf(outcome.reason) !== UNIQUE_VIOLATION) return { error: outcome.reason }
      return describeFailure(statements, failedAt, 'unique')
    }
    const expected = statements[failedAt]!.rows
    if (expected !== undefined && outcome.value.rowCount !== expected) {
      return describeFailure(statements, failedAt, 'rows')
    }
  }
  return undefined
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code
}
