/** A claim, as the row of its interaction holds it. */
import type { Stage } from '../domain/event.ts'
import { placeOf } from '../domain/ids.ts'
import { databaseNow } from './clock.ts'
import type { Database } from './port.ts'
import type { CountedFor } from './usage.ts'

/** The right to write one interaction's log, until the lease runs out or another writer raises the epoch. */
export interface Claim extends CountedFor {
  readonly id: string
  readonly epoch: number
  readonly lastSeq: number
  /** The stage that the log reported last. */
  readonly stage: Stage
  readonly attempts: number
  /** When it was accepted, when a worker first claimed it, and now. Database clock, milliseconds since the Unix epoch. */
  readonly createdAt: number
  readonly startedAt: number
  readonly claimedAt: number
}

export interface Claimant {
  /** `<data directory>.<process>`: see sandbox/data-directory.ts. */
  readonly owner: string
  readonly leaseMs: number
  /** Maximum number of interactions of one project that run at the same time. */
  readonly runningPerProject: number
  /** Interactions that it already runs. If one of its own leases ran out, it renews that lease instead of claiming again. */
  readonly except?: readonly string[]
  /** Skip interactions that have one attempt left. */
  readonly noSuspects?: boolean
}

/** Columns that say whose usage a run is. */
export const COUNTED_FOR_COLUMNS = ['project_id', 'agent_id', 'model', 'key_id'] as const

/** Columns from which `toClaim` makes a claim; `claimed_at` comes with them. */
export const CLAIM_COLUMNS = [
  'id',
  ...COUNTED_FOR_COLUMNS,
  'epoch',
  'last_seq',
  'stage',
  'attempts',
  'started_at',
  'created_at',
] as const

/** Reads COUNTED_FOR_COLUMNS. */
export function toCountedFor(row: Readonly<Record<string, unknown>>): CountedFor {
  return {
    projectId: String(row.project_id),
    agentId: row.agent_id === null ? undefined : String(row.agent_id),
    model: String(row.model ?? ''),
    keyId: String(row.key_id),
  }
}

export function toClaim(row: Readonly<Record<string, unknown>>): Claim {
  return {
    id: String(row.id),
    ...toCountedFor(row),
    epoch: Number(row.epoch),
    lastSeq: Number(row.last_seq),
    stage: row.stage as Stage,
    attempts: Number(row.attempts),
    startedAt: Number(row.started_at),
    createdAt: Number(row.created_at),
    claimedAt: Number(row.claimed_at),
  }
}

/** Reads the claim of an interaction and its owner; undefined if there is no such interaction. */
export async function findClaim(
  db: Database,
  id: string,
): Promise<{ readonly claim: Claim; readonly owner: string | null } | undefined> {
  const row = await db.query
    .selectFrom('interactions')
    .select([...CLAIM_COLUMNS, 'lease_owner'])
    .select(databaseNow(db.dialect).as('claimed_at'))
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { claim: toClaim(row), owner: row.lease_owner }
}

/** The prefix that the names of all processes of an owner's data directory share. It has no LIKE wildcard. */
export function directoryPrefix(owner: string): string {
  return `${placeOf(owner)}.`
}
