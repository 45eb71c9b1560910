/** An interaction's network audit in revision 2026-05-20: answer schema and encoding. */
import { z } from 'zod'
import type { AuditEntry } from '../../../store/audit.ts'
import type { Body } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { nextPageToken, time } from './common-fields.ts'

const entry = z
  .object({
    time: time(),
    kind: z.string().meta({
      description:
        'What the connection was for: `file` (an input file by URL), `sandbox` (a program in the sandbox), `browser`, `mcp`, `search`, `webhook`, `blob`.',
      examples: ['sandbox'],
    }),
    host: z.string().meta({
      description: 'The host name. `*`: the audit was full, and new hosts were refused from then on.',
      examples: ['api.example.com'],
    }),
    port: z.int(),
    outcome: z.enum(['dialled', 'refused', 'unresolved']).meta({
      description:
        '`dialled`: allowed. `refused`: not allowed. `unresolved`: the name has no address. Stored before the connection is made.',
    }),
    count: z.int().min(1).meta({ description: 'Number of connections. Those within one minute share an entry.' }),
  })
  .meta({ title: 'AuditEntry', description: 'A host that the interaction connected to, or tried to.' })

export const audit = z
  .object({
    entries: z.array(entry),
    nextPageToken,
  })
  .meta({ title: 'Audit' })

export function encodeAudit(entries: readonly AuditEntry[], nextPageToken: string | undefined): Body {
  return {
    entries: entries.map(({ at, kind, host, port, outcome, count }) => {
      return { time: rfc3339(at), kind, host, port, outcome, count }
    }),
    nextPageToken,
  }
}
