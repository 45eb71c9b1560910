/** Interactions: one operation a function. The row is also the queue's entry; nothing else says what waits. */
import { type RawBuilder, sql } from 'kysely'
import { ErrandError } from '../domain/errors.ts'
import type { Stage, Status, StopReason, StoredEvent } from '../domain/event.ts'
import type { Interaction, RunSpec, StoredFile } from '../domain/interaction.ts'
import type { Usage } from '../domain/usage.ts'
import { databaseNow, fromNow } from './clock.ts'
import { projectLock } from './locks.ts'
import type { Database, Statement } from './port.ts'
import type { InteractionsTable } from './tables.ts'

/** How often a claimant looks again after others took what it had seen. */
const CLAIM_ATTEMPTS = 10

/** A claim: the right to write one interaction's log until its lease runs out or somebody else raises the epoch. */
export interface Claim {
  readonly id: string
  readonly projectId: string
  readonly epoch: number
  readonly lastSeq: number
  readonly attempts: number
  /** When it was accepted, when a worker first took it, and now, by the database's clock: milliseconds since 1970. */
  readonly createdAt: number
  readonly startedAt: number
  readonly claimedAt: number
}

export interface Claimant {
  readonly owner: string
  readonly leaseMs: number
  /** Interactions of one project that may be worked on at once. */
  readonly runningPerProject: number
  /** What it works on already: a lease of its own that ran out is to be prolonged, not claimed anew. */
  readonly except?: readonly string[]
}

export interface NewInteraction {
  readonly id: string
  readonly projectId: string
  readonly keyId: string
  readonly spec: RunSpec
  readonly labels: Readonly<Record<string, string>>
  readonly events: readonly StoredEvent[]
  readonly createdAt: number
  /** `notBefore`: an older row under this key is forgotten. Milliseconds since 1970. */
  readonly idempotency?: { readonly key: string; readonly fingerprint: string; readonly notBefore: number }
  /** Refuse where the project has this many waiting already. */
  readonly queuedPerProject: number
  readonly runningPerProject: number
}

export type InsertOutcome =
  | { readonly outcome: 'accepted'; readonly claim: Claim | undefined }
  | { readonly outcome: 'duplicate_key' }
  | { readonly outcome: 'queue_full' }

/**
 * Stores a new interaction whole: row, spec, labels, first events, idempotency key. With `claimant` it is claimed in the
 * same transaction if its project has room, which spares a run on an idle server one commit.
 */
export async function insertInteraction(
  db: Database,
  interaction: NewInteraction,
  claimant: Claimant | undefined,
): Promise<InsertOutcome> {
  const statements: Statement[] = projectLock(db, interaction.projectId)
  if (interaction.idempotency) {
    statements.push({
      query: db.query
        .deleteFrom('idempotency')
        .where('project_id', '=', interaction.projectId)
        .where('key', '=', interaction.idempotency.key)
        .where('created_at', '<', interaction.idempotency.notBefore)
        .compile(),
    })
    statements.push({
      query: db.query
        .insertInto('idempotency')
        .values({
          project_id: interaction.projectId,
          key: interaction.idempotency.key,
          fingerprint: interaction.idempotency.fingerprint,
          interaction_id: interaction.id,
          created_at: interaction.createdAt,
        })
        .compile(),
    })
  }
  const rowAt = statements.length
  statements.push({ query: insertRow(db, interaction), rows: 1 }, ...insertDetails(db, interaction))
  const claimAt = statements.length
  if (claimant) statements.push({ query: claimQuery(db, claimant, interaction.projectId, interaction.id) })
  const result = await db.write(statements)
  if (!result.ok) {
    if (result.failedAt === rowAt && result.reason === 'rows') return { outcome: 'queue_full' }
    if (result.reason === 'unique' && result.failedAt < rowAt) return { outcome: 'duplicate_key' }
    throw new Error(`inserting ${interaction.id}: statement ${result.failedAt} failed (${result.reason})`)
  }
  const claimed = claimant ? result.rows[claimAt]?.[0] : undefined
  return { outcome: 'accepted', claim: claimed ? toClaim(claimed) : undefined }
}

/** Inserts the row only while the project's open interactions are fewer than may run and wait together. */
function insertRow(db: Database, interaction: NewInteraction) {
  const row: InteractionsTable = {
    id: interaction.id,
    project_id: interaction.projectId,
    key_id: interaction.keyId,
    agent_id: interaction.spec.agentId ?? null,
    status: 'running',
    stage: 'queued',
    created_at: interaction.createdAt,
    started_at: null,
    ended_at: null,
    epoch: 0,
    attempts: 0,
    lease_owner: null,
    lease_until: 0,
    last_seq: interaction.events.length,
    stop_reason: null,
    error: null,
    usage: null,
    output_files: null,
  }
  const columns = Object.keys(row) as (keyof InteractionsTable)[]
  const open = db.query
    .selectFrom('interactions')
    .select((s) => s.fn.countAll<number>().as('open'))
    .where('project_id', '=', interaction.projectId)
    .where('status', '=', sql.lit('running'))
  return db.query
    .insertInto('interactions')
    .columns(columns)
    .expression(
      db.query
        .selectNoFrom(columns.map((column) => bare(row[column]).as(column)))
        .where(open, '<', interaction.queuedPerProject + interaction.runningPerProject),
    )
    .compile()
}

/** A value in a select list: `null` literally, since a bare parameter has no type for Postgres to infer. */
function bare(value: string | number | null): RawBuilder<unknown> {
  return value === null ? sql.lit(null) : sql.val(value)
}

function insertDetails(db: Database, interaction: NewInteraction): Statement[] {
  const { id, projectId, createdAt } = interaction
  const labels = Object.entries(interaction.labels)
  const statements: Statement[] = [
    {
      query: db.query
        .insertInto('specs')
        .values({
          interaction_id: id,
          spec: JSON.stringify(interaction.spec),
          labels: JSON.stringify(interaction.labels),
        })
        .compile(),
    },
    {
      query: db.query
        .insertInto('events')
        .values(interaction.events.map((event) => ({ interaction_id: id, ...event, at: createdAt })))
        .compile(),
    },
  ]
  if (labels.length > 0) {
    statements.push({
      query: db.query
        .insertInto('labels')
        .values(
          labels.map(([key, value]) => ({
            project_id: projectId,
            kind: 'interaction' as const,
            object_id: id,
            key,
            value,
          })),
        )
        .compile(),
    })
  }
  return statements
}

/**
 * Claims one interaction of a project that has room: the given one, or the oldest that waits (never claimed, or its lease
 * ran out). `SKIP LOCKED`: one that is being ended, or written to by a worker that lost it, holds up nobody.
 */
function claimQuery(db: Database, claimant: Claimant, projectId: string, id?: string) {
  const now = databaseNow(db.dialect)
  const running = db.query
    .selectFrom('interactions as r')
    .select((s) => s.fn.countAll<number>().as('running'))
    .where('r.project_id', '=', projectId)
    .where('r.status', '=', sql.lit('running'))
    .where('r.lease_until', '>', now)
  let candidate = db.query
    .selectFrom('interactions as q')
    .select('q.id')
    .where('q.project_id', '=', projectId)
    .where('q.status', '=', sql.lit('running'))
    .where('q.lease_until', '<=', now)
    .where(running, '<', claimant.runningPerProject)
  if (claimant.except?.length) candidate = candidate.where('q.id', 'not in', claimant.except)
  candidate =
    id === undefined
      ? candidate.orderBy('q.id').limit(1)
      : // A new one does not go before those that wait.
        candidate
          .where('q.id', '=', id)
          .where((eb) =>
            eb.not(
              eb.exists(
                eb
                  .selectFrom('interactions as w')
                  .select('w.id')
                  .where('w.project_id', '=', projectId)
                  .where('w.status', '=', sql.lit('running'))
                  .where('w.lease_until', '<=', now)
                  .where('w.id', '<', id),
              ),
            ),
          )
  if (db.dialect === 'postgres') candidate = candidate.forUpdate().skipLocked()
  return db.query
    .updateTable('interactions')
    .set((eb) => ({
      epoch: eb('epoch', '+', 1),
      attempts: eb('attempts', '+', 1),
      lease_owner: claimant.owner,
      lease_until: fromNow(db.dialect, claimant.leaseMs),
      started_at: eb.fn.coalesce('started_at', now),
    }))
    .where('id', '=', candidate)
    .returning(['id', 'project_id', 'epoch', 'last_seq', 'attempts', 'started_at', 'created_at'])
    .returning(now.as('claimed_at'))
    .compile()
}

function toClaim(row: Readonly<Record<string, unknown>>): Claim {
  return {
    id: String(row.id),
    projectId: String(row.project_id),
    epoch: Number(row.epoch),
    lastSeq: Number(row.last_seq),
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
    const claim = { query: claimQuery(db, claimant, projectId) }
    const result = await db.write([...projectLock(db, projectId), claim])
    const row = result.ok ? result.rows.at(-1)?.[0] : undefined
    if (row) return toClaim(row)
  }
  return undefined
}

/** The project of the oldest that waits, among those that have room: a hint, since the claim looks again. */
async function findProjectWithWork(db: Database, { runningPerProject, except }: Claimant): Promise<string | undefined> {
  const now = databaseNow(db.dialect)
  const mine = except?.length ? except : ['']
  const row = await db.query
    .selectFrom('interactions')
    .select('project_id')
    .where('status', '=', sql.lit('running'))
    .groupBy('project_id')
    .having((eb) => eb(eb.fn.countAll().filterWhere('lease_until', '>', now), '<', runningPerProject))
    .having((eb) =>
      eb(eb.fn.countAll().filterWhere('lease_until', '<=', now).filterWhere('id', 'not in', mine), '>', 0),
    )
    .orderBy((eb) => eb.fn.min('id').filterWhere('lease_until', '<=', now).filterWhere('id', 'not in', mine))
    .limit(1)
    .executeTakeFirst()
  return row?.project_id
}

/** Prolongs this owner's leases on these interactions; returns the ids that are still its own, with their epochs. */
export async function renewLeases(
  db: Database,
  owner: string,
  leaseMs: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const result = await db.write([
    {
      query: db.query
        .updateTable('interactions')
        .set({ lease_until: fromNow(db.dialect, leaseMs) })
        .where('id', 'in', ids)
        .where('lease_owner', '=', owner)
        .where('status', '=', sql.lit('running'))
        .returning(['id', 'epoch'])
        .compile(),
    },
  ])
  if (!result.ok) return new Map()
  return new Map(result.rows[0]!.map((row) => [String(row.id), Number(row.epoch)]))
}

/** Gives an interaction back to the queue, unharmed: a hand-over at shutdown is no failed attempt. */
export async function releaseClaim(db: Database, claim: Pick<Claim, 'id' | 'epoch'>): Promise<void> {
  await db.write([
    {
      query: db.query
        .updateTable('interactions')
        .set((eb) => ({ lease_owner: null, lease_until: 0, attempts: eb('attempts', '-', 1) }))
        .where('id', '=', claim.id)
        .where('epoch', '=', claim.epoch)
        .where('status', '=', sql.lit('running'))
        .compile(),
    },
  ])
}

/** Interactions that no worker has taken for `waitMs` since they were accepted. */
export async function findStarved(
  db: Database,
  waitMs: number,
): Promise<{ id: string; epoch: number; createdAt: number }[]> {
  const rows = await db.query
    .selectFrom('interactions')
    .select(['id', 'epoch', 'created_at'])
    .where('status', '=', sql.lit('running'))
    .where('started_at', 'is', null)
    .where('created_at', '<', fromNow(db.dialect, -waitMs))
    .limit(100)
    .execute()
  return rows.map((row) => ({ id: row.id, epoch: row.epoch, createdAt: Number(row.created_at) }))
}

/** Ended interactions whose end is older than `ageMs`, oldest first. */
export async function findExpired(
  db: Database,
  ageMs: number,
  limit: number,
): Promise<{ id: string; projectId: string }[]> {
  const rows = await db.query
    .selectFrom('interactions')
    .select(['id', 'project_id'])
    .where('status', '<>', sql.lit('running'))
    .where('ended_at', '<', fromNow(db.dialect, -ageMs))
    .orderBy('ended_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ id: row.id, projectId: row.project_id }))
}

export async function findInteraction(db: Database, id: string, projectId?: string): Promise<Interaction | undefined> {
  let query = interactionQuery(db).where('i.id', '=', id)
  if (projectId !== undefined) query = query.where('i.project_id', '=', projectId)
  const row = await query.executeTakeFirst()
  return row && toInteraction(row)
}

function interactionQuery(db: Database) {
  return db.query.selectFrom('interactions as i').innerJoin('specs as s', 's.interaction_id', 'i.id').select(COLUMNS)
}

const COLUMNS = [
  'i.id',
  'i.project_id',
  'i.status',
  'i.stage',
  'i.created_at',
  'i.ended_at',
  'i.last_seq',
  'i.stop_reason',
  'i.error',
  'i.usage',
  'i.output_files',
  's.spec',
  's.labels',
] as const

type InteractionRow = Awaited<ReturnType<ReturnType<typeof interactionQuery>['executeTakeFirstOrThrow']>>

function toInteraction(row: InteractionRow): Interaction {
  return {
    id: row.id,
    projectId: row.project_id,
    status: row.status as Status,
    stage: row.stage as Stage,
    spec: JSON.parse(row.spec) as RunSpec,
    labels: JSON.parse(row.labels) as Record<string, string>,
    createdAt: Number(row.created_at),
    endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
    stopReason: (row.stop_reason ?? undefined) as StopReason | undefined,
    error: row.error === null ? undefined : JSON.parse(row.error),
    usage: row.usage === null ? undefined : (JSON.parse(row.usage) as Usage),
    lastSeq: Number(row.last_seq),
    outputFiles: row.output_files === null ? [] : (JSON.parse(row.output_files) as StoredFile[]),
  }
}

export interface InteractionFilter {
  readonly agentId?: string
  readonly status?: Status
  readonly labels: Readonly<Record<string, string>>
  readonly order: 'asc' | 'desc'
  readonly after?: string
}

/**
 * One page, by age: ids begin with their time, so the id is the page's key. With a label, the label's rows are walked in
 * the order of their ids and looked up one by one: a label on 98,000 interactions costs no more than one on ten.
 */
export async function listInteractions(
  db: Database,
  projectId: string,
  filter: InteractionFilter,
  limit: number,
): Promise<Interaction[]> {
  const { agentId, status, after, order } = filter
  const [first, ...others] = Object.entries(filter.labels)
  if (!first) {
    let query = interactionQuery(db).where('i.project_id', '=', projectId)
    if (agentId !== undefined) query = query.where('i.agent_id', '=', agentId)
    if (status !== undefined) query = query.where('i.status', '=', status)
    if (after !== undefined) query = query.where('i.id', order === 'asc' ? '>' : '<', after)
    return (await query.orderBy('i.id', order).limit(limit).execute()).map(toInteraction)
  }
  let query = labelled(db, projectId, 'interaction', ...first)
    .clearSelect()
    .innerJoin('interactions as i', 'i.id', 'labels.object_id')
    .innerJoin('specs as s', 's.interaction_id', 'i.id')
    .select(COLUMNS)
  if (agentId !== undefined) query = query.where('i.agent_id', '=', agentId)
  if (status !== undefined) query = query.where('i.status', '=', status)
  if (after !== undefined) query = query.where('labels.object_id', order === 'asc' ? '>' : '<', after)
  for (const other of others) query = query.where('i.id', 'in', labelled(db, projectId, 'interaction', ...other))
  return (await query.orderBy('labels.object_id', order).limit(limit).execute()).map(toInteraction)
}

/** The ids of a project's agents or interactions that carry a label. */
export function labelled(db: Database, projectId: string, kind: 'agent' | 'interaction', key: string, value: string) {
  return db.query
    .selectFrom('labels')
    .select('labels.object_id')
    .where('labels.project_id', '=', projectId)
    .where('labels.kind', '=', kind)
    .where('labels.key', '=', key)
    .where('labels.value', '=', value)
}

/** Removes an ended interaction and all that hangs on it. False where it is not there, or still running. */
export async function deleteInteraction(db: Database, projectId: string, id: string): Promise<boolean> {
  const result = await db.write([
    {
      query: db.query
        .deleteFrom('interactions')
        .where('id', '=', id)
        .where('project_id', '=', projectId)
        .where('status', '<>', 'running')
        .compile(),
      rows: 1,
    },
    ...(['events', 'turns', 'specs', 'idempotency', 'audit'] as const).map((table) => ({
      query: db.query.deleteFrom(table).where('interaction_id', '=', id).compile(),
    })),
    { query: db.query.deleteFrom('labels').where('object_id', '=', id).where('kind', '=', 'interaction').compile() },
  ])
  return result.ok
}

/** The interaction that an idempotency key stands for. Throws `idempotency_mismatch` where the request is another. */
export async function findByIdempotencyKey(
  db: Database,
  projectId: string,
  idempotency: { readonly key: string; readonly fingerprint: string },
  notBefore: number,
): Promise<string | undefined> {
  const row = await db.query
    .selectFrom('idempotency')
    .select(['fingerprint', 'interaction_id'])
    .where('project_id', '=', projectId)
    .where('key', '=', idempotency.key)
    .where('created_at', '>=', notBefore)
    .executeTakeFirst()
  if (!row) return undefined
  if (row.fingerprint !== idempotency.fingerprint) {
    throw new ErrandError(
      'idempotency_mismatch',
      'This Idempotency-Key was used before with another request body. Send the same body again, or use a new key.',
    )
  }
  return row.interaction_id
}

/** Forgets idempotency keys that are older than their time. */
export async function deleteIdempotencyKeys(db: Database, before: number): Promise<void> {
  await db.write([{ query: db.query.deleteFrom('idempotency').where('created_at', '<', before).compile() }])
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
