/** The audit of a run: each host outside that was turned to on its behalf, written before it was dialled. */
import type { OutboundConnectionKind } from '../domain/outbound-connection.ts'
import { type Database, wasMade } from './port.ts'

export interface AuditEntry {
  readonly id: string
  /** Milliseconds since 1970: of the first connection that it stands for. */
  readonly at: number
  /** What the connection was for. */
  readonly kind: OutboundConnectionKind
  /** `*`: the audit was full, and whatever else was new was refused. */
  readonly host: string
  readonly port: number
  readonly outcome: 'dialled' | 'refused' | 'unresolved'
  /** How many connections it stands for. */
  readonly count: number
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  /** What `after` takes for the page behind; undefined on the last one. */
  readonly next: string | undefined
}

/** Durable when it resolves. */
export async function insertAudit(
  db: Database,
  interactionId: string,
  entry: Omit<AuditEntry, 'count'>,
): Promise<void> {
  const query = db.query
    .insertInto('audit')
    .values({ interaction_id: interactionId, ...entry, count: 1 })
    .compile()
  // Taken: it was written before, and the answer to that got lost.
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
