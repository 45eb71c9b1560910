/** Interactions: one operation a function. */
import { type AliasedExpression, expressionBuilder, type RawBuilder, sql } from 'kysely'
import type { Stage, Status, StopReason, StoredEvent } from '../domain/event.ts'
import { firstIdAt } from '../domain/ids.ts'
import type { Interaction, InteractionSummary, RunSpec, StoredFile } from '../domain/interaction.ts'
import type { Usage } from '../domain/usage.ts'
import { type Claim, type Claimant, findClaim, toClaim } from './claim-row.ts'
import { claimNewStatements } from './claims.ts'
import { databaseNow, fromNow } from './clock.ts'
import { insertFirstEvents } from './events.ts'
import { fixedQuery } from './fixed-query.ts'
import { projectLock } from './locks.ts'
import { type Database, fenced, type Statement, unexpectedFailure, type WriteResult, wasMade } from './port.ts'
import { type Removal, removalStatement } from './removals.ts'
import { retryWhileDatabaseDown } from './retry-while-down.ts'
import type { InteractionsTable, SpecsTable } from './tables.ts'
import { insertWebhook } from './webhooks.ts'

/** So long a caller waits to hear what became of a request whose commit got no answer. */
const LOOK_UP_MS = 5_000

export interface NewInteraction {
  readonly id: string
  readonly projectId: string
  readonly keyId: string
  readonly spec: RunSpec
  readonly labels: Readonly<Record<string, string>>
  readonly events: readonly StoredEvent[]
  /**
   * Of its idempotency key, by the clock of who accepts it. The row's own, and its first events', are the database's: how
   * long it has waited must not hang on whose clock goes wrong.
   */
  readonly createdAt: number
  /** A row of the same key is replaced if it is older than `notBefore` (milliseconds since 1970), or held by the interaction `releasedBy`. */
  readonly idempotency?: {
    readonly key: string
    readonly fingerprint: string
    readonly notBefore: number
    readonly releasedBy?: string | undefined
  }
  readonly webhook?: { readonly sealedUrl: string; readonly revision: string }
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
    const { key, notBefore, releasedBy } = interaction.idempotency
    statements.push({
      query: db.query
        .deleteFrom('idempotency')
        .where('project_id', '=', interaction.projectId)
        .where('key', '=', key)
        // Of concurrent requests, the first one replaces the row; the others then violate its primary key, and join.
        .where((eb) =>
          eb.or([
            eb('created_at', '<', notBefore),
            ...(releasedBy === undefined ? [] : [eb('interaction_id', '=', releasedBy)]),
          ]),
        )
        .compile(),
    })
    statements.push({
      query: db.query
        .insertInto('idempotency')
        .values({
          project_id: interaction.projectId,
          key,
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
  if (claimant) statements.push(...claimNewStatements(db, claimant, interaction.projectId, interaction.id))
  let result: WriteResult
  try {
    result = await db.write(statements)
  } catch (error) {
    // The answer to the commit may have got lost.
    const stored = await retryWhileDatabaseDown(LOOK_UP_MS, () => findClaim(db, interaction.id))
    if (!stored) throw error
    // Where the log has grown otherwise, the claim is another one's, though it is the same worker's: it found what waited.
    const isOurs = stored.owner === claimant?.owner && stored.claim.lastSeq === interaction.events.length + 1
    return { outcome: 'accepted', claim: isOurs ? stored.claim : undefined }
  }
  if (!result.ok) {
    if (result.failedAt === rowAt && result.reason === 'rows') return { outcome: 'queue_full' }
    if (result.reason === 'unique' && result.failedAt < rowAt) return { outcome: 'duplicate_key' }
    throw unexpectedFailure(result)
  }
  const claimed = claimant ? result.rows[claimAt]?.[0] : undefined
  return { outcome: 'accepted', claim: claimed ? toClaim(claimed) : undefined }
}

/** The row only while the project's open interactions are fewer than may run and wait together. */
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
    // As a sub-select: Postgres would not look up in an index what may change from row to row.
    .where('ended_at', '<', sql<number>`(select ${fromNow(db.dialect, -ageMs)})`)
    .orderBy('ended_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ id: row.id, projectId: row.project_id }))
}

/** Those of these ids that are in the table. */
export async function knownInteractions(db: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db.query.selectFrom('interactions').select('id').where('id', 'in', ids).execute()
  return new Set(rows.map(({ id }) => id))
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

const OWN_COLUMNS = [
  'i.id',
  'i.project_id',
  'i.key_id',
  'i.status',
  'i.stage',
  'i.created_at',
  'i.ended_at',
  'i.last_seq',
  'i.stop_reason',
  'i.error',
  'i.usage',
] as const
const SUMMARY_COLUMNS = [...OWN_COLUMNS, 's.spec', 's.labels'] as const
const COLUMNS = [...SUMMARY_COLUMNS, 'i.output_files'] as const

type WithoutTable<Column> = Column extends `i.${infer Name}` ? Name : never
type OwnColumn = WithoutTable<(typeof OWN_COLUMNS)[number]>
type InteractionRow = Awaited<ReturnType<ReturnType<typeof interactionQuery>['executeTakeFirstOrThrow']>>

function toInteraction(row: InteractionRow): Interaction {
  const outputFiles = row.output_files === null ? [] : (JSON.parse(row.output_files) as StoredFile[])
  return { ...toSummary(row), outputFiles }
}

function toSummary(row: Omit<InteractionRow, 'output_files'>): InteractionSummary {
  return {
    id: row.id,
    projectId: row.project_id,
    keyId: row.key_id,
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
  }
}

export interface InteractionFilter {
  readonly agentId?: string
  readonly model?: string
  readonly status?: Status
  readonly keyId?: string
  /** Made at that time or later, and before the other; milliseconds since 1970. */
  readonly createdAfter?: number
  readonly createdBefore?: number
  readonly labels: Readonly<Record<string, string>>
  readonly order: 'asc' | 'desc'
  readonly after?: string
}

/** From an interaction's id to its commit: its files are stored in between. */
const ACCEPTING_MS = 60_000

/** Specs of one page, bytes: what follows is on the next page. One of 100 specs at their limits would take 50 MB. */
const PAGE_SPEC_BYTES = 2 * 1024 * 1024

export interface InteractionPage {
  readonly interactions: InteractionSummary[]
  /** There are more behind the last one. */
  readonly more: boolean
}

/**
 * One page, by age: ids begin with their time, so the id is the page's key. It has at least one interaction and at most
 * `pageSize`; fewer where their specs have more than PAGE_SPEC_BYTES. With a label, the label's rows are walked in the
 * order of their ids and looked up one by one: a label on 98,000 interactions costs no more than one on ten.
 */
export async function listInteractions(
  db: Database,
  projectId: string,
  filter: InteractionFilter,
  pageSize: number,
): Promise<InteractionPage> {
  const limit = pageSize + 1
  const { createdAfter, createdBefore, after, order } = filter
  // Ids begin with their time: a time is a place among them. The row's own time is that of its commit, a little later.
  const from = createdAfter === undefined ? undefined : firstIdAt('int', Math.max(0, createdAfter - ACCEPTING_MS))
  const to = createdBefore === undefined ? undefined : firstIdAt('int', createdBefore)
  const [first, ...others] = Object.entries(filter.labels)
  if (!first) {
    let page = db.query.selectFrom('interactions as i').where('i.project_id', '=', projectId).where(saysOfRow(filter))
    if (from !== undefined) page = page.where('i.id', '>=', from)
    if (to !== undefined) page = page.where('i.id', '<', to)
    if (after !== undefined) page = page.where('i.id', order === 'asc' ? '>' : '<', after)
    return pageWithSpecs(db, page.select(OWN_COLUMNS).orderBy('i.id', order).limit(limit).as('i'), order, pageSize)
  }
  let page = labelled(db, projectId, 'interaction', ...first)
    .clearSelect()
    .innerJoin('interactions as i', 'i.id', 'labels.object_id')
    .where(saysOfRow(filter))
  // Said of both: Postgres joins from where one of them begins, and does not conclude it for the other.
  for (const id of ['labels.object_id', 'i.id'] as const) {
    if (from !== undefined) page = page.where(id, '>=', from)
    if (to !== undefined) page = page.where(id, '<', to)
    if (after !== undefined) page = page.where(id, order === 'asc' ? '>' : '<', after)
  }
  for (const other of others) page = page.where('i.id', 'in', labelled(db, projectId, 'interaction', ...other))
  const rows = page.select(OWN_COLUMNS).orderBy('labels.object_id', order).limit(limit)
  return pageWithSpecs(db, rows.as('i'), order, pageSize)
}

/** What the filter says of an interaction's own row, apart from its place among the ids. */
function saysOfRow({ agentId, model, status, keyId, createdAfter, createdBefore }: InteractionFilter) {
  const is = expressionBuilder<{ i: InteractionsTable }, 'i'>()
  const said = [
    agentId !== undefined && is('i.agent_id', '=', agentId),
    model !== undefined && is('i.model', '=', model),
    status !== undefined && is('i.status', '=', status),
    keyId !== undefined && is('i.key_id', '=', keyId),
    createdAfter !== undefined && is('i.created_at', '>=', createdAfter),
    createdBefore !== undefined && is('i.created_at', '<', createdBefore),
  ]
  return is.and(said.filter((each) => each !== false))
}

/**
 * The page first, then what belongs to it. Joined in one, Postgres walked the specs from the newest one to where the page
 * begins, and asked of each whether its project may see it: a second a page from the middle of 10⁵.
 */
async function pageWithSpecs(
  db: Database,
  page: AliasedExpression<Pick<InteractionRow, OwnColumn>, 'i'>,
  order: 'asc' | 'desc',
  pageSize: number,
): Promise<InteractionPage> {
  const sized = db.query
    .selectFrom(page)
    .innerJoin('specs as s', 's.interaction_id', 'i.id')
    .select(OWN_COLUMNS)
    // A text's length in bytes is known without reading the text.
    .select(
      sql<number>`coalesce(sum(octet_length(s.spec)) over (order by i.id ${sql.raw(order)} rows between unbounded preceding and 1 preceding), 0)`.as(
        'bytes_before',
      ),
    )
    .select(sql<number>`count(*) over ()`.as('found'))
  const rows = await db.query
    .selectFrom(sized.as('i'))
    .innerJoin('specs as s', 's.interaction_id', 'i.id')
    .select([...SUMMARY_COLUMNS, 'i.found'])
    .where('i.bytes_before', '<', PAGE_SPEC_BYTES)
    .orderBy('i.id', order)
    .execute()
  const shown = rows.slice(0, pageSize)
  return { interactions: shown.map(toSummary), more: shown.length < Number(rows[0]?.found ?? 0) }
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

/**
 * Removes an ended interaction and all that hangs on it, and puts that on record. False where it is not there any more, or
 * still running: then nothing is.
 */
export async function deleteInteraction(db: Database, removal: Removal): Promise<boolean> {
  const { interactionId: id, projectId } = removal
  // Last of all: what hangs on it is a project's for as long as it is there.
  const result = await db.write([
    ...(
      [
        'events',
        'turns',
        'specs',
        'idempotency',
        'audit',
        'result_media',
        'approvals',
        'webhooks',
        'webhook_deliveries',
      ] as const
    ).map((table) => ({
      query: db.query.deleteFrom(table).where('interaction_id', '=', id).compile(),
    })),
    { query: db.query.deleteFrom('labels').where('object_id', '=', id).where('kind', '=', 'interaction').compile() },
    fenced(
      db.query
        .deleteFrom('interactions')
        .where('id', '=', id)
        .where('project_id', '=', projectId)
        .where('status', '<>', 'running')
        .compile(),
    ),
    removalStatement(db, removal),
  ])
  return wasMade(result, 'fence')
}
