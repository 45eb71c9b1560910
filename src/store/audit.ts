/** The audit of a run: each host outside that was turned to on its behalf, written before it was dialled. */
import type { ContactKind } from '../domain/contact.ts'
import type { Database } from './port.ts'

export interface AuditEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  /** What the connection was for. */
  readonly kind: ContactKind
  readonly host: string
  readonly port: number
  readonly outcome: 'dialled' | 'refused'
}

/** Durable when it resolves. */
export async function insertAudit(db: Database, interactionId: string, entry: AuditEntry): Promise<void> {
  const query = db.query
    .insertInto('audit')
    .values({ interaction_id: interactionId, ...entry })
    .compile()
  await db.write([{ query }])
}

/** Oldest first. */
export async function auditOf(db: Database, interactionId: string): Promise<AuditEntry[]> {
  const rows = await db.query
    .selectFrom('audit')
    .select(['at', 'kind', 'host', 'port', 'outcome'])
    .where('interaction_id', '=', interactionId)
    .orderBy('at')
    .execute()
  return rows as AuditEntry[]
}
