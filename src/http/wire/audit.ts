/** The audit as it is shown: the hosts that were turned to on an interaction's behalf. */
import { z } from 'zod'
import type { AuditEntry } from '../../store/audit.ts'
import type { Body } from './codec.ts'
import { rfc3339 } from './time.ts'

const entry = z
  .object({
    time: z.iso.datetime().meta({ examples: ['2026-05-20T09:30:00.000Z'] }),
    kind: z.string().meta({
      description:
        'What the connection was for: `file` (an input file by URL), `sandbox` (a program in it), `browser`, `mcp`, `search`, `webhook`, `blob`.',
      examples: ['sandbox'],
    }),
    host: z.string().meta({
      description: '`*`: the audit was full; hosts that were not in it yet were refused from then on.',
      examples: ['api.example.com'],
    }),
    port: z.int(),
    outcome: z.enum(['dialled', 'refused', 'unresolved']).meta({
      description: '`refused` by the guard, `unresolved`: the name has no address. Written before anything is dialled.',
    }),
    count: z.int().min(1).meta({ description: 'Contacts that it stands for: those within a minute are one entry.' }),
  })
  .meta({ title: 'AuditEntry', description: 'A host outside that was turned to on the interaction’s behalf.' })

export const audit = z
  .object({
    entries: z.array(entry),
    nextPageToken: z.string().optional().meta({ description: 'For the next page; absent on the last one.' }),
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
