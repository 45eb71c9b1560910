/**
 * The queue: the rows of `interactions` that are not over. A row is its own entry in it; nothing else says what waits.
 * Who claims one may write its log until its lease, on the database's clock, runs out.
 */
import { type SelectQueryBuilder, sql } from 'kysely'
import { encodeEvent, type RunEvent, type Stage, type StoredEvent } from '../domain/event.ts'
import { placeOf } from '../domain/ids.ts'
import { databaseNow, fromNow } from './clock.ts'
import { fixedQuery } from './fixed-query.ts'
import { textsOf } from './lists.ts'
import { projectLock } from './locks.ts'
import { assertMade, type Database, fenced, type Statement } from './port.ts'
import { retryWhileDatabaseDown } from './retry-while-down.ts'
import type { Tables } from './tables.ts'
import type { CountedFor } from './usage.ts'

/** A run that waits for a person keeps its lease, and no place among those of its project that may run at once. */
const PARKED = sql.lit('requires_action' satisfies Stage)

/** Claims after which an interaction is taken to kill its workers. */
export const MAX_ATTEMPTS = 3

/** What was worked on at another place may have its sandboxes there: a process that starts there again goes first. */
const AT_HOME_MS = 5_000

/** How often a claimant looks again after others took what it had seen. */
const CLAIM_ATTEMPTS = 10

/** A claim: the right to write one interaction's log until its lease runs out or somebody else raises the epoch. */
export interface Claim extends CountedFor {
  readonly id: string
  readonly epoch: number
  readonly lastSeq: number
  /** What its log said last of where it is. */
  readonly stage: Stage
  readonly attempts: number
  /** When it was accepted, when a worker first took it, and now, by the database's clock: milliseconds since 1970. */
  readonly createdAt: number
  readonly startedAt: number
  readonly claimedAt: number
}

export interface Claimant {
  /** `place.process`: see sandbox/place.ts. */
  readonly owner: string
  readonly leaseMs: number
  /** Interactions of one project that may be worked on at once. */
  readonly runningPerProject: number
  /** What it works on already: a lease of its own that ran out is to be prolonged, not claimed anew. */
  readonly except?: readonly string[]
  /** Takes none that has one attempt left. */
  readonly noSuspects?: boolean
}

const FOR = ['project_id', 'agent_id', 'model', 'key_id'] as const
const CLAIMED = ['id', ...FOR, 'epoch', 'last_seq', 'stage', 'attempts', 'started_at', 'created_at'] as const

/** Whose use it is, from these columns. */
function countedFor(row: Readonly<Record<string, unknown>>): CountedFor {
  return {
    projectId: String(row.project_id),
    agentId: row.agent_id === null ? undefined : String(row.agent_id),
    model: String(row.model ?? ''),
    keyId: String(row.key_id),
  }
}

interface ClaimArguments {
  readonly projectId: string
  readonly owner: string
  readonly home: string
  readonly leaseMs: number
  readonly most: number
}

/**
 * Claims one interaction of a project that has room, among the candidates. `SKIP LOCKED`: one that is being ended, or
 * written to by a worker that lost it, holds up nobody.
 */
function claimAmong(
  db: Database,
  args: ClaimArguments,
  narrow: (candidates: Candidates) => Candidates,
  told: { readonly stage: Stage; readonly events: number } | undefined,
) {
  const now = databaseNow(db.dialect)
  const running = db.query
    .selectFrom('interactions as r')
    .select((s) => s.fn.countAll<number>().as('running'))
    .where('r.project_id', '=', args.projectId)
    .where('r.status', '=', sql.lit('running'))
    .where('r.lease_until', '>', now)
    .where('r.stage', '<>', PARKED)
  const candidate = narrow(
    db.query
      .selectFrom('interactions as q')
      .select('q.id')
      .where('q.status', '=', sql.lit('running'))
      .where(waits(db, args.home))
      .where('q.project_id', '=', args.projectId)
      .where(running, '<', args.most),
  )
  return db.query
    .updateTable('interactions')
    .set((eb) => ({
      epoch: eb('epoch', '+', 1),
      attempts: eb('attempts', '+', 1),
      lease_owner: args.owner,
      lease_until: sql<number>`${now} + ${args.leaseMs}`,
      started_at: eb.fn.coalesce('started_at', now),
      ...(told && { stage: sql.lit(told.stage), last_seq: eb('last_seq', '+', sql.lit(told.events)) }),
    }))
    .where('id', '=', db.dialect === 'postgres' ? candidate.forUpdate().skipLocked() : candidate)
    .returning(CLAIMED)
    .returning(now.as('claimed_at'))
}

/** Of the row `q`, whether it waits for who is at `home`: never claimed, given back, or its lease ran out. */
function waits(db: Database, home: string) {
  const now = databaseNow(db.dialect)
  // A pattern that is a parameter alone makes SQLite prepare the statement anew for each value.
  const left = sql<boolean>`(q.lease_owner is null or q.lease_owner like ${home} || '%' or q.lease_until <= ${now} - ${sql.lit(AT_HOME_MS)})`
  return sql<boolean>`q.lease_until <= ${now} and ${left}`
}
type Candidates = SelectQueryBuilder<Tables & { q: Tables['interactions'] }, 'q', { id: string }>

const BEGUN = { type: 'stage', stage: 'working' } as const satisfies RunEvent

const claimNew = fixedQuery((db, args: ClaimArguments & { id: string }) =>
  claimAmong(
    db,
    args,
    (candidate) =>
      candidate
        .where('q.id', '=', args.id)
        // It does not go before those that wait.
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('interactions as w')
                .select('w.id')
                .where('w.project_id', '=', args.projectId)
                .where('w.status', '=', sql.lit('running'))
                .where('w.lease_until', '<=', databaseNow(db.dialect))
                .where('w.id', '<', args.id),
            ),
          ),
        ),
    { stage: BEGUN.stage, events: 1 },
  ),
)

/** Where the claim before it took the interaction: the event that says so. */
const tellBegun = fixedQuery((db, { id }: { id: string }) =>
  db.query
    .insertInto('events')
    .columns(['interaction_id', 'seq', 'type', 'data', 'at'])
    .expression((eb) =>
      eb
        .selectFrom('interactions')
        .select([
          'id',
          'last_seq',
          sql.lit(BEGUN.type).as('type'),
          sql.lit(encodeEvent(BEGUN)).as('data'),
          databaseNow(db.dialect).as('at'),
        ])
        .where('id', '=', id)
        .where('epoch', '=', sql.lit(1)),
    ),
)

/**
 * Claims the interaction that the same write inserts, where its project has room and nothing older waits, and tells in its
 * log that it is worked on: a commit less for each run than a worker's own word for it.
 */
export function claimNewStatements(db: Database, claimant: Claimant, projectId: string, id: string): Statement[] {
  return [{ query: claimNew(db, { ...claimArguments(claimant, projectId), id }) }, { query: tellBegun(db, { id }) }]
}

/** The event that a claim of `claimNewStatements` told. */
export function begunEvent({ lastSeq: seq }: Claim): StoredEvent {
  return { seq, type: BEGUN.type, data: encodeEvent(BEGUN) }
}

/** Which of those that wait a claimant takes. */
interface Choice {
  readonly home: string
  readonly except: string
  /** Only those with fewer attempts. */
  readonly below: number
}

const claimFirst = fixedQuery((db, args: ClaimArguments & Choice) =>
  claimAmong(
    db,
    args,
    (candidate) =>
      candidate
        .where('q.id', 'not in', textsOf(db.dialect, args.except))
        .where('q.attempts', '<', args.below)
        .orderBy('q.id')
        .limit(1),
    undefined,
  ),
)

function claimArguments({ owner, leaseMs, runningPerProject }: Claimant, projectId: string): ClaimArguments {
  return { projectId, owner, home: homeOf(owner), leaseMs: Math.round(leaseMs), most: runningPerProject }
}

/** What the names of all processes of an owner's place begin with. It has no wildcard of LIKE. */
function homeOf(owner: string): string {
  return `${placeOf(owner)}.`
}

/** How an interaction is claimed, and by whom; undefined where there is none. */
export async function findClaim(
  db: Database,
  id: string,
): Promise<{ readonly claim: Claim; readonly owner: string | null } | undefined> {
  const row = await db.query
    .selectFrom('interactions')
    .select([...CLAIMED, 'lease_owner'])
    .select(databaseNow(db.dialect).as('claimed_at'))
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { claim: toClaim(row), owner: row.lease_owner }
}

export function toClaim(row: Readonly<Record<string, unknown>>): Claim {
  return {
    id: String(row.id),
    ...countedFor(row),
    epoch: Number(row.epoch),
    lastSeq: Number(row.last_seq),
    stage: row.stage as Stage,
    attempts: Number(row.attempts),
    startedAt: Number(row.started_at),
    createdAt: Number(row.created_at),
    claimedAt: Number(row.claimed_at),
  }
}

/**
 * Claims the oldest that waits and whose project has room. Undefined where there is none, or where others were faster
 * again and again: it is for who asks to ask once more, later.
 */
export async function claimOldest(db: Database, claimant: Claimant): Promise<Claim | undefined> {
  for (let attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
    const projectId = await findProjectWithWork(db, claimant)
    if (projectId === undefined) return undefined
    const query = claimFirst(db, { ...claimArguments(claimant, projectId), ...choiceOf(claimant) })
    const result = await db.write([...projectLock(db, projectId), { query }])
    assertMade(result)
    const row = result.rows.at(-1)![0]
    if (row) return toClaim(row)
  }
  return undefined
}

function choiceOf({ owner, except = [], noSuspects }: Claimant): Choice {
  const below = noSuspects ? MAX_ATTEMPTS - 1 : Number.MAX_SAFE_INTEGER
  return { home: homeOf(owner), except: JSON.stringify(except), below }
}

const projectWithWork = fixedQuery((db, { most, home, except, below }: Choice & { most: number }) => {
  const now = databaseNow(db.dialect)
  const mine = textsOf(db.dialect, except)
  const mayHave = sql<boolean>`${waits(db, home)} and id not in ${mine} and attempts < ${below}`
  return db.query
    .selectFrom('interactions as q')
    .select('project_id')
    .where('status', '=', sql.lit('running'))
    .groupBy('project_id')
    .having((eb) => {
      const running = eb.fn.countAll().filterWhere('lease_until', '>', now).filterWhere('stage', '<>', PARKED)
      return eb(running, '<', most)
    })
    .having((eb) => eb(eb.fn.countAll().filterWhere(mayHave), '>', 0))
    .orderBy((eb) => eb.fn.min('id').filterWhere(mayHave))
    .limit(1)
})

/** The project of the oldest that waits, among those that have room: a hint, since the claim looks again. */
async function findProjectWithWork(db: Database, claimant: Claimant): Promise<string | undefined> {
  const query = projectWithWork(db, { most: claimant.runningPerProject, ...choiceOf(claimant) })
  return (await db.read(query))[0]?.project_id
}

const firstWaiting = fixedQuery((db, _: object) =>
  db.query
    .selectFrom('interactions')
    .select('id')
    .where('status', '=', sql.lit('running'))
    .where('lease_until', '<=', databaseNow(db.dialect))
    .limit(sql.lit(1)),
)

/** Whether anything waits, whether its project has room or not, and whoever is to have it first. */
export async function anyWaits(db: Database): Promise<boolean> {
  return (await db.read(firstWaiting(db, {}))).length > 0
}

/**
 * Prolongs this owner's leases on these interactions; returns the ids that are still its own, with their epochs. A database
 * that is away for a moment is asked again: renewals are too far apart for one of them to be missed.
 */
export async function renewLeases(
  db: Database,
  owner: string,
  leaseMs: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const query = db.query
    .updateTable('interactions')
    .set({ lease_until: fromNow(db.dialect, leaseMs) })
    .where('id', 'in', textsOf(db.dialect, JSON.stringify(ids)))
    .where('lease_owner', '=', owner)
    .where('status', '=', sql.lit('running'))
    .returning(['id', 'epoch'])
    .compile()
  const result = await retryWhileDatabaseDown(leaseMs / 4, () => db.write([{ query }]))
  assertMade(result)
  return new Map(result.rows[0]!.map((row) => [String(row.id), Number(row.epoch)]))
}

/** Who holds an interaction, or held it last. */
export interface Holder {
  readonly status: string
  readonly owner: string | null
  /** Its lease has not run out, and nobody let go of it. */
  readonly held: boolean
}

export async function readHolder(db: Database, id: string): Promise<Holder | undefined> {
  const row = await db.query
    .selectFrom('interactions')
    .select(['status', 'lease_owner'])
    .select((eb) => eb('lease_until', '>', databaseNow(db.dialect)).as('held'))
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { status: row.status, owner: row.lease_owner, held: Boolean(row.held) }
}

/** Who else of an owner's place holds leases. */
export async function readHoldersAtHome(db: Database, owner: string): Promise<string[]> {
  const rows = await db.query
    .selectFrom('interactions')
    .select('lease_owner')
    .distinct()
    .where('status', '=', sql.lit('running'))
    .where('lease_until', '>', databaseNow(db.dialect))
    .where('lease_owner', 'like', `${homeOf(owner)}%`)
    .where('lease_owner', '<>', owner)
    .execute()
  return rows.map(({ lease_owner }) => lease_owner!)
}

/** Ends the leases of a process that is dead. */
export async function endLeases(db: Database, dead: string): Promise<void> {
  const query = db.query
    .updateTable('interactions')
    .set({ lease_until: databaseNow(db.dialect) })
    .where('lease_owner', '=', dead)
    .where('status', '=', sql.lit('running'))
    .compile()
  await db.write([{ query }])
}

/** Of an interaction that was ended from outside: nothing of it is left where this owner worked on it. */
export async function releaseLease(db: Database, owner: string, id: string): Promise<void> {
  const query = db.query
    .updateTable('interactions')
    .set({ lease_owner: null, lease_until: 0 })
    .where('id', '=', id)
    .where('lease_owner', '=', owner)
    .where('status', '<>', sql.lit('running'))
    .compile()
  await db.write([{ query }])
}

const epochsOf = fixedQuery((db, { ids }: { ids: string }) =>
  db.query.selectFrom('interactions').select(['id', 'epoch']).where('id', 'in', textsOf(db.dialect, ids)),
)

/** By id: whoever works on one under a lower epoch has lost it. */
export async function readEpochs(db: Database, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await db.read(epochsOf(db, { ids: JSON.stringify(ids) }))
  return new Map(rows.map(({ id, epoch }) => [id, Number(epoch)]))
}

/**
 * Gives an interaction back to the queue; does nothing where the claim is lost. Processes of its owner's place may claim it
 * first. `planned`: the attempt is not counted, as at a shutdown; any other counts towards MAX_ATTEMPTS.
 */
export async function requeue(
  db: Database,
  claim: Pick<Claim, 'id' | 'epoch'>,
  owner: string,
  { planned }: { readonly planned: boolean },
): Promise<void> {
  await db.write([
    {
      query: db.query
        .updateTable('interactions')
        .set((eb) => ({
          // No process has this name: a renewal that is on its way finds nothing.
          lease_owner: homeOf(owner),
          lease_until: databaseNow(db.dialect),
          ...(planned && { attempts: eb('attempts', '-', 1) }),
        }))
        .where('id', '=', claim.id)
        .where('epoch', '=', claim.epoch)
        .where('status', '=', sql.lit('running'))
        .compile(),
    },
  ])
}

/** Forgets the claims before this one, under the fence: it was not this run that ended its workers. */
export function resetAttemptsStatement(db: Database, { id, epoch }: Pick<Claim, 'id' | 'epoch'>): Statement {
  const query = db.query
    .updateTable('interactions')
    .set({ attempts: 1 })
    .where('id', '=', id)
    .where('epoch', '=', epoch)
  return fenced(query.compile())
}

/** Interactions that no worker has taken for `waitMs` since they were accepted. */
export async function findStarved(
  db: Database,
  waitMs: number,
): Promise<{ id: string; epoch: number; createdAt: number; countedFor: CountedFor }[]> {
  const rows = await db.query
    .selectFrom('interactions')
    .select(['id', ...FOR, 'epoch', 'created_at'])
    .where('status', '=', sql.lit('running'))
    .where('started_at', 'is', null)
    .where('created_at', '<', fromNow(db.dialect, -waitMs))
    .limit(100)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    epoch: row.epoch,
    createdAt: Number(row.created_at),
    countedFor: countedFor(row),
  }))
}

/** What is not over: with a worker, without one, and how long the oldest has waited for one. */
export async function readQueue(db: Database): Promise<{ running: number; queued: number; oldestWaitMs: number }> {
  const now = databaseNow(db.dialect)
  const rows = await db.query
    .selectFrom('interactions')
    .select((eb) => [
      eb('lease_until', '>', now).as('leased'),
      eb.fn.countAll<number>().as('count'),
      sql<number>`${now} - min(created_at)`.as('oldest'),
    ])
    .where('status', '=', sql.lit('running'))
    .groupBy('leased')
    .execute()
  const running = rows.find((row) => Boolean(row.leased))
  const queued = rows.find((row) => !row.leased)
  return {
    running: Number(running?.count ?? 0),
    queued: Number(queued?.count ?? 0),
    oldestWaitMs: Number(queued?.oldest ?? 0),
  }
}
