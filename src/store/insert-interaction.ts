/** Stores a new interaction: its row, spec, labels, first events, webhook and idempotency key, in one transaction. */
import { type RawBuilder, sql } from 'kysely'
import type { StoredEvent } from '../domain/event.ts'
import type { RunSpec } from '../domain/interaction.ts'
import { type Claim, type Claimant, findClaim, toClaim } from './claim-row.ts'
import { claimNewStatements } from './claims.ts'
import { databaseNow } from './clock.ts'
import { insertFirstEvents } from './events.ts'
import { fixedQuery } from './fixed-query.ts'
import { projectLock } from './locks.ts'
import { type Database, type Statement, unexpectedFailure, type WriteResult } from './port.ts'
import { retryWhileDatabaseDown } from './retry-while-down.ts'
import type { InteractionsTable, SpecsTable } from './tables.ts'
import { insertWebhook } from './webhooks.ts'

/** Time to look up whether a commit succeeded if its response was lost, in milliseconds. */
const LOOK_UP_MS = 5_000

export interface NewInteraction {
  readonly id: string
  readonly projectId: string
  readonly keyId: string
  readonly spec: RunSpec
  readonly labels: Readonly<Record<string, string>>
  readonly events: readonly StoredEvent[]
  /**
   * Creation time of the idempotency key, on the accepting node's clock. The row and its first events take the database's
   * clock instead, so that a wrong clock on one node does not change how long an interaction has waited.
   */
  readonly createdAt: number
  /** A row of the same key is replaced if it is older than `notBefore` (milliseconds since the Unix epoch), or held by `releasedBy`. */
  readonly idempotency?: {
    readonly key: string
    readonly fingerprint: string
    readonly notBefore: number
    readonly releasedBy?: string | undefined
  }
  readonly webhook?: { readonly sealedUrl: string; readonly revision: string }
  /** The insert is refused if the project already has this many interactions waiting. */
  readonly queuedPerProject: number
  readonly runningPerProject: number
}

export type InsertOutcome =
  | { readonly outcome: 'accepted'; readonly claim: Claim | undefined }
  | { readonly outcome: 'duplicate_key' }
  | { readonly outcome: 'queue_full' }

/**
 * Stores a new interaction. With a `claimant` it is claimed in the same transaction if its project has room; on an idle
 * server this saves one commit for each run.
 */
export async function insertInteraction(
  db: Database,
  interaction: NewInteraction,
  claimant: Claimant | undefined,
): Promise<InsertOutcome> {
  const before = [...projectLock(db, interaction.projectId), ...replaceIdempotencyKey(db, interaction)]
  const row = { query: insertRow(db, interaction), rows: 1 }
  const claim = claimant ? claimNewStatements(db, claimant, interaction.projectId, interaction.id) : []
  const stored = [...before, row, ...insertDetails(db, interaction)]
  let result: WriteResult
  try {
    result = await db.write([...stored, ...claim])
  } catch (error) {
    // The write may have committed although its response was lost.
    const found = await retryWhileDatabaseDown(LOOK_UP_MS, () => findClaim(db, interaction.id))
    if (!found) throw error
    // If the log has grown further, the same worker claimed it later from the queue: that is another claim.
    const isOurs = found.owner === claimant?.owner && found.claim.lastSeq === interaction.events.length + 1
    return { outcome: 'accepted', claim: isOurs ? found.claim : undefined }
  }
  if (!result.ok) {
    if (result.failedAt === before.length && result.reason === 'rows') return { outcome: 'queue_full' }
    if (result.reason === 'unique' && result.failedAt < before.length) return { outcome: 'duplicate_key' }
    throw unexpectedFailure(result)
  }
  const claimed = claimant ? result.rows[stored.length]?.[0] : undefined
  return { outcome: 'accepted', claim: claimed ? toClaim(claimed) : undefined }
}

/** Stores the idempotency key, if there is one, and first deletes an expired or released row of the same key. */
function replaceIdempotencyKey(db: Database, { id, projectId, idempotency, createdAt }: NewInteraction): Statement[] {
  if (!idempotency) return []
  const { key, fingerprint, notBefore, releasedBy } = idempotency
  const remove = db.query
    .deleteFrom('idempotency')
    .where('project_id', '=', projectId)
    .where('key', '=', key)
    // The first of concurrent requests replaces the row. The others then violate its primary key, and join that run.
    .where((eb) =>
      eb.or([
        eb('created_at', '<', notBefore),
        ...(releasedBy === undefined ? [] : [eb('interaction_id', '=', releasedBy)]),
      ]),
    )
  const insert = db.query
    .insertInto('idempotency')
    .values({ project_id: projectId, key, fingerprint, interaction_id: id, created_at: createdAt })
  return [{ query: remove.compile() }, { query: insert.compile() }]
}

/** Inserts the row only if the project has fewer open interactions than may run and wait together. */
const insertRowOf = (agent: 'of an agent' | 'of none') =>
  fixedQuery(
    (
      db,
      row: Pick<InteractionsTable, 'id' | 'project_id' | 'key_id' | 'agent_id' | 'model' | 'last_seq'> & {
        most: number
      },
    ) => {
      const open = db.query
        .selectFrom('interactions')
        .select((s) => s.fn.countAll<number>().as('open'))
        .where('project_id', '=', row.project_id)
        .where('status', '=', sql.lit('running'))
      const given = {
        id: row.id,
        project_id: row.project_id,
        key_id: row.key_id,
        model: row.model,
        last_seq: row.last_seq,
      }
      const columns: Record<string, RawBuilder<unknown>> = {
        ...Object.fromEntries(Object.entries(given).map(([column, value]) => [column, sql.val(value)])),
        // Null literally: a bare parameter has no type for Postgres to infer.
        agent_id: agent === 'of none' ? sql.lit(null) : sql.val(row.agent_id),
        status: sql.lit('running'),
        stage: sql.lit('queued'),
        created_at: databaseNow(db.dialect),
        ...Object.fromEntries(['epoch', 'attempts', 'lease_until'].map((column) => [column, sql.lit(0)])),
      }
      const names = Object.keys(columns) as (keyof InteractionsTable)[]
      return db.query
        .insertInto('interactions')
        .columns(names)
        .expression(db.query.selectNoFrom(names.map((name) => columns[name]!.as(name))).where(open, '<', row.most))
    },
  )

const insertRowOfAgent = insertRowOf('of an agent')
const insertRowOfNone = insertRowOf('of none')

function insertRow(db: Database, interaction: NewInteraction) {
  const { id, spec } = interaction
  const insert = spec.agentId === undefined ? insertRowOfNone : insertRowOfAgent
  return insert(db, {
    id,
    project_id: interaction.projectId,
    key_id: interaction.keyId,
    agent_id: spec.agentId ?? null,
    model: spec.model,
    last_seq: interaction.events.length,
    most: interaction.queuedPerProject + interaction.runningPerProject,
  })
}

const insertSpec = fixedQuery((db, row: SpecsTable) =>
  db.query.insertInto('specs').values({ interaction_id: row.interaction_id, spec: row.spec, labels: row.labels }),
)

function insertDetails(db: Database, interaction: NewInteraction): Statement[] {
  const { id, projectId } = interaction
  const labels = Object.entries(interaction.labels)
  const spec = JSON.stringify(interaction.spec)
  const statements: Statement[] = [
    { query: insertSpec(db, { interaction_id: id, spec, labels: JSON.stringify(interaction.labels) }) },
    ...insertFirstEvents(db, id, interaction.events),
  ]
  if (interaction.webhook) {
    statements.push(insertWebhook(db, { interactionId: id, projectId, ...interaction.webhook }))
  }
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
