/** Puts each host that is turned to on a run's behalf into its audit, before it is dialled. */
import type { ContactKind } from '../domain/contact.ts'
import type { Contact } from '../egress/port.ts'
import { insertAudit } from '../store/audit.ts'
import type { EngineParts } from './parts.ts'

export function createAuditor({ db, now }: Pick<EngineParts, 'db' | 'now'>, interactionId: string) {
  return (kind: ContactKind) =>
    (contact: Contact): Promise<void> =>
      insertAudit(db, interactionId, { at: now(), kind, ...contact })
}
