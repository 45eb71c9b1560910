/** The audit of a run: each external host that was contacted on its behalf, stored before the connection is made. */
import type { OutboundConnectionKind } from '../domain/outbound-connection.ts'
import { type Database, wasMade } from './port.ts'

export interface AuditEntry {
  readonly id: string
  /** Time of the entry's first connection, milliseconds since the Unix epoch. */
  readonly at: number
  /** Purpose of the connection. */
  readonly kind: OutboundConnectionKind
  /** Host name, or `*`: the audit was full, and connections to further hosts were refused. */
  readonly host: string
  readonly port: number
  readonly outcome: 'dialled' | 'refused' | 'unresolved'
  /** Number of connections in this entry. */
  readonly count: number
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  /** The `after` of the next page; undefined on the last page. */
  readonly next: string | undefined
}

/** Stores an entry. Durable when it resolves. */
export async function insertAudit(
  db: Database,
  interactionId: string,
  entry: Omit<AuditEntry, 'count'>,
): Promise<void> {
  const query = db.query
    .insertInto('audit')
    .values({ interaction_id: interactionId, ...entry, count: 1 })
    .compile()
  // A taken id means that an earlier try was committed and its response lost.
  wasMade(await db.write([{ query }]), 'unique')
}

export async function recountAudit(db: Database, interactionId: string, id: string, count: number): Promise<void> {
  const query = db.query
    .updateTable('audit')
    .set({ count })
    .where('interaction_id', '=', interactionId)
    .where('id', '=', id)
    .compile()
  await db.write([{ query }])
}

export async function countAudit(db: Database, interactionId: string): Promise<number> {
  const row = await db.query
    .selectFrom('audit')
    .select((eb) => eb.fn.countAll().as('entries'))
    .where('interaction_id', '=', interactionId)
    .executeTakeFirst()
  return Number(row?.entries ?? 0)
}

/** Oldest first, paged by (at, id). */
export async function listAudit(
  db: Database,
  interactionId: string,
  { pageSize, after = '' }: { readonly pageSize: number; readonly after?: string },
): Promise<AuditPage> {
  let select = db.query.selectFrom('audit').selectAll().where('interaction_id', '=', interactionId)
  const [, time, id] = /^(\d{1,15})\.(.*)$/.exec(after) ?? []
  if (time !== undefined && id !== undefined) {
    const at = Number(time)
    select = select.where((eb) => eb.or([eb('at', '>', at), eb.and([eb('at', '=', at), eb('id', '>', id)])]))
  }
  const rows = await select
    .orderBy('at')
    .orderBy('id')
    .limit(pageSize + 1)
    .execute()
  const entries = rows
    .slice(0, pageSize)
    .map(
      ({ interaction_id: _, ...row }) =>
        ({ ...row, at: Number(row.at), port: Number(row.port), count: Number(row.count) }) as AuditEntry,
    )
  const last = entries.at(-1)
  return { entries, next: last && rows.length > entries.length ? `${last.at}.${last.id}` : undefined }
}
