/**
 * Advisory locks on Postgres, listed by their first key. SQLite has a single writer and needs none.
 *
 * Limits per project are enforced by counting rows. Under READ COMMITTED two concurrent writes do not see each other's row,
 * so together they could exceed the limit (eight concurrent claimants claimed 4 runs with a limit of 3). Therefore a write
 * that counts first takes its project's lock; its next statement then counts everything committed before.
 *
 * Cost: a project's submissions and claims commit one after another, each with two round trips and an fsync. On two cores
 * shared with the database that allows 360 submissions a second on one project, and 760 on twenty. Appends, ends, leases
 * and deletions take no lock. Rejected alternatives: SERIALIZABLE (writes of a busy project, including appends, fail and
 * are retried); locking the project's row (each submission would rewrite it and leave work for vacuum).
 */
import { sql } from 'kysely'
import type { Database, Statement } from './port.ts'

export const MIGRATION_LOCK = 1_163_022_897
const PROJECT_LOCK = MIGRATION_LOCK + 1

/** Takes the project's lock until the write commits. Must precede the statements that count the project's interactions. */
export function projectLock({ dialect, query }: Database, projectId: string): Statement[] {
  if (dialect === 'sqlite') return []
  return [{ query: sql`select pg_advisory_xact_lock(${PROJECT_LOCK}, hashtext(${projectId}))`.compile(query) }]
}
