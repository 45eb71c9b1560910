/**
 * A write on Postgres: one transaction on one connection.
 *
 * BEGIN and all statements go out in one flight (pg's pipeline mode); what each of them did decides over COMMIT or
 * ROLLBACK. So a write of any length takes two round trips and one fsync, which Postgres shares among those that commit
 * at the same time. Where no statement says how many rows it must touch, COMMIT goes with them: that is one round trip.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, QueryResult } from 'pg'
import { describeFailure, type Statement, type Write, type WriteFailure, type WriteResult } from '../port.ts'
import { begin, type Scope, send } from './transaction.ts'

const UNIQUE_VIOLATION = '23505'
/** Serialization failure and deadlock: nothing was written, and trying again helps. */
const TRY_AGAIN = new Set<unknown>(['40001', '40P01'])
const TRIES = 6
const FIRST_PAUSE_MS = 10

/**
 * Rejects with the driver's error where the connection broke or the database refused. Nothing was written then, but where
 * the answer to COMMIT was lost: that may have happened, and a fenced write that is tried again finds its fence moved.
 */
export async function runWrite(client: ClientBase, scope: Scope, write: Write): Promise<WriteResult> {
  // Asked once: who gives statements as a function has let go of what they say.
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
    // After a statement that failed, Postgres takes it for a ROLLBACK.
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
  // Where the connection is gone, so is the transaction; the failure says more than this error would.
  if (!decided) await client.query('rollback').catch(() => {})
  if ('error' in failure) throw failure.error
  return failure
}

/** The first statement that did not what it had to. Those behind it ran, or were refused, in vain. */
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
