/**
 * Claiming: how a worker takes an interaction from the queue. The queue is the rows of `interactions` that are running and
 * not leased; there is no other list of them. A claim raises the epoch, and its owner may write the log until the lease
 * runs out on the database's clock.
 */
import { type SelectQueryBuilder, sql } from 'kysely'
import { encodeEvent, type RunEvent, type Stage, type StoredEvent } from '../domain/event.ts'
import { CLAIM_COLUMNS, type Claim, type Claimant, directoryPrefix, toClaim } from './claim-row.ts'
import { databaseNow } from './clock.ts'
import { fixedQuery } from './fixed-query.ts'
import { textsOf } from './json-list.ts'
import { projectLock } from './locks.ts'
import { assertMade, type Database, type Statement } from './port.ts'
import type { Tables } from './tables.ts'

/** The stage of a run that waits for a person. It keeps its lease but does not count towards `runningPerProject`. */
const PARKED = sql.lit('requires_action' satisfies Stage)

/** Maximum number of claims of one interaction: after that we assume that it kills its workers. */
export const MAX_ATTEMPTS = 3

/**
 * Head start of processes that restart in the data directory of the former owner, because its sandboxes may still be there.
 * Counted from the end of the lease.
 */
const SAME_DIRECTORY_MS = 5_000

/** Maximum number of tries of `claimOldest` if other claimants are faster. */
const CLAIM_TRIES = 10

interface ClaimArguments {
  readonly projectId: string
  readonly owner: string
  readonly prefix: string
  readonly leaseMs: number
  readonly most: number
}

type Candidates = SelectQueryBuilder<Tables & { q: Tables['interactions'] }, 'q', { id: string }>

/**
 * Claims one of the candidates if the project has room. `SKIP LOCKED`: a row that is being ended, or written by a worker
 * that lost it, delays no claim. `begun`: what the events that the same write inserts change in the row.
 */
function claimAmong(
  db: Database,
  args: ClaimArguments,
  narrow: (candidates: Candidates) => Candidates,
  begun: { readonly stage: Stage; readonly events: number } | undefined,
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
      .where(isClaimable(db, args.prefix))
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
      ...(begun && { stage: sql.lit(begun.stage), last_seq: eb('last_seq', '+', sql.lit(begun.events)) }),
    }))
    .where('id', '=', db.dialect === 'postgres' ? candidate.forUpdate().skipLocked() : candidate)
    .returning(CLAIM_COLUMNS)
    .returning(now.as('claimed_at'))
}

/** A condition on the row `q`: never claimed, requeued, or its lease ran out; and the head start of its directory is over. */
function isClaimable(db: Database, prefix: string) {
  const now = databaseNow(db.dialect)
  // If the whole pattern were a parameter, SQLite would prepare the statement again for each value.
  const left = sql<boolean>`(q.lease_owner is null or q.lease_owner like ${prefix} || '%' or q.lease_until <= ${now} - ${sql.lit(SAME_DIRECTORY_MS)})`
  return sql<boolean>`q.lease_until <= ${now} and ${left}`
}

const BEGUN = { type: 'stage', stage: 'working' } as const satisfies RunEvent

const claimNew = fixedQuery((db, args: ClaimArguments & { id: string }) =>
  claimAmong(
    db,
    args,
    (candidate) =>
      candidate
        .where('q.id', '=', args.id)
        // Older interactions of the project that wait go first.
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

/** Inserts the stage event if the statement before it claimed the interaction. */
const insertBegunEvent = fixedQuery((db, { id }: { id: string }) =>
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
 * Claims the interaction that the same write inserts, if its project has room and nothing older waits, and logs the stage
 * `working`. This saves one commit for each run: the worker need not write that event itself.
 */
export function claimNewStatements(db: Database, claimant: Claimant, projectId: string, id: string): Statement[] {
  const query = claimNew(db, { ...claimArguments(claimant, projectId), id })
  return [{ query }, { query: insertBegunEvent(db, { id }) }]
}

/** The event that `claimNewStatements` logged for this claim. */
export function begunEvent({ lastSeq: seq }: Claim): StoredEvent {
  return { seq, type: BEGUN.type, data: encodeEvent(BEGUN) }
}

/** The waiting interactions that a claimant may take. */
interface Choice {
  readonly prefix: string
  readonly except: string
  /** Only interactions with fewer attempts. */
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
  return {
    projectId,
    owner,
    prefix: directoryPrefix(owner),
    leaseMs: Math.round(leaseMs),
    most: runningPerProject,
  }
}

/**
 * Claims the oldest waiting interaction whose project has room. Returns undefined if there is none, or if other claimants
 * were faster CLAIM_TRIES times; the caller tries again later.
 */
export async function claimOldest(db: Database, claimant: Claimant): Promise<Claim | undefined> {
  for (let attempt = 0; attempt < CLAIM_TRIES; attempt++) {
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
  return { prefix: directoryPrefix(owner), except: JSON.stringify(except), below }
}

const projectWithWork = fixedQuery((db, { most, prefix, except, below }: Choice & { most: number }) => {
  const now = databaseNow(db.dialect)
  const mine = textsOf(db.dialect, except)
  const mayHave = sql<boolean>`${isClaimable(db, prefix)} and id not in ${mine} and attempts < ${below}`
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

/** The project of the oldest waiting interaction among projects with room. A hint: the claim itself checks again. */
async function findProjectWithWork(db: Database, claimant: Claimant): Promise<string | undefined> {
  const query = projectWithWork(db, { most: claimant.runningPerProject, ...choiceOf(claimant) })
  return (await db.read(query))[0]?.project_id
}
