/** Lists of a project's interactions: filtered, by age, one page at a time. */
import { type AliasedExpression, expressionBuilder, sql } from 'kysely'
import type { Status } from '../domain/event.ts'
import { firstIdAt } from '../domain/ids.ts'
import type { InteractionSummary } from '../domain/interaction.ts'
import { type InteractionRow, OWN_COLUMNS, SUMMARY_COLUMNS, toSummary } from './interactions.ts'
import { labelled } from './labels.ts'
import type { Database } from './port.ts'
import type { InteractionsTable } from './tables.ts'

type WithoutTable<Column> = Column extends `i.${infer Name}` ? Name : never
type OwnColumn = WithoutTable<(typeof OWN_COLUMNS)[number]>

export interface InteractionFilter {
  readonly agentId?: string
  readonly model?: string
  readonly status?: Status
  readonly keyId?: string
  /** Created at or after the first time and before the second. Milliseconds since the Unix epoch. */
  readonly createdAfter?: number
  readonly createdBefore?: number
  readonly labels: Readonly<Record<string, string>>
  readonly order: 'asc' | 'desc'
  readonly after?: string
}

/** Maximum time between the creation of an interaction's id and its commit. Its files are stored in between. */
const ACCEPTING_MS = 60_000

/** Maximum size of the specs of one page, in bytes. A page of 100 specs at their limits would take 50 MB. */
const PAGE_SPEC_BYTES = 2 * 1024 * 1024

export interface InteractionPage {
  readonly interactions: InteractionSummary[]
  /** True if there is a next page. */
  readonly more: boolean
}

/**
 * Reads one page by age. Ids begin with their creation time, so the id is the page's key. A page has at least one
 * interaction and at most `pageSize`; fewer if their specs exceed PAGE_SPEC_BYTES together. With a label filter the query
 * reads the label's rows in id order and looks up each interaction: a label on 98,000 interactions costs no more than a
 * label on ten.
 */
export async function listInteractions(
  db: Database,
  projectId: string,
  filter: InteractionFilter,
  pageSize: number,
): Promise<InteractionPage> {
  const limit = pageSize + 1
  const { createdAfter, createdBefore, after, order } = filter
  // Ids begin with their creation time, so a time limits the ids. The row's own time is that of its commit, slightly later.
  const from = createdAfter === undefined ? undefined : firstIdAt('int', Math.max(0, createdAfter - ACCEPTING_MS))
  const to = createdBefore === undefined ? undefined : firstIdAt('int', createdBefore)
  const [first, ...others] = Object.entries(filter.labels)
  if (!first) {
    let page = db.query.selectFrom('interactions as i').where('i.project_id', '=', projectId).where(matchesRow(filter))
    if (from !== undefined) page = page.where('i.id', '>=', from)
    if (to !== undefined) page = page.where('i.id', '<', to)
    if (after !== undefined) page = page.where('i.id', order === 'asc' ? '>' : '<', after)
    return pageWithSpecs(db, page.select(OWN_COLUMNS).orderBy('i.id', order).limit(limit).as('i'), order, pageSize)
  }
  let page = labelled(db, projectId, 'interaction', ...first)
    .clearSelect()
    .innerJoin('interactions as i', 'i.id', 'labels.object_id')
    .where(matchesRow(filter))
  // Stated for both columns: Postgres does not infer the bound of one from that of the other.
  for (const id of ['labels.object_id', 'i.id'] as const) {
    if (from !== undefined) page = page.where(id, '>=', from)
    if (to !== undefined) page = page.where(id, '<', to)
    if (after !== undefined) page = page.where(id, order === 'asc' ? '>' : '<', after)
  }
  for (const other of others) page = page.where('i.id', 'in', labelled(db, projectId, 'interaction', ...other))
  const rows = page.select(OWN_COLUMNS).orderBy('labels.object_id', order).limit(limit)
  return pageWithSpecs(db, rows.as('i'), order, pageSize)
}

/** The filter's conditions on columns of the interaction's own row, other than its id. */
function matchesRow({ agentId, model, status, keyId, createdAfter, createdBefore }: InteractionFilter) {
  const is = expressionBuilder<{ i: InteractionsTable }, 'i'>()
  const conditions = [
    agentId !== undefined && is('i.agent_id', '=', agentId),
    model !== undefined && is('i.model', '=', model),
    status !== undefined && is('i.status', '=', status),
    keyId !== undefined && is('i.key_id', '=', keyId),
    createdAfter !== undefined && is('i.created_at', '>=', createdAfter),
    createdBefore !== undefined && is('i.created_at', '<', createdBefore),
  ]
  return is.and(conditions.filter((each) => each !== false))
}

/**
 * Selects the page first and joins the specs to it. With a single join Postgres read all specs from the newest one to the
 * start of the page, and checked row-level security on each: one second for a page from the middle of 10⁵ interactions.
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
    // octet_length needs no read of the text itself.
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
