/**
 * The audit log of a run: each outbound connection is recorded before it is dialed. A hijacked model must not fill the
 * database: connections to one host and port within a minute form one entry with a count, and once there are too many
 * entries, connections to new hosts are refused.
 */

import { newId } from '../../domain/ids.ts'
import type { OutboundConnectionKind } from '../../domain/outbound-connection.ts'
import { EgressError, type OutboundConnection } from '../../egress/port.ts'
import { countAudit, insertAudit, recountAudit } from '../../store/audit.ts'
import { MAX_OUTAGE_MS, retryWhileDatabaseDown } from '../../store/retry-while-down.ts'
import type { EngineDependencies } from '../dependencies.ts'

/** Connections to one host and port within this time form one entry. */
const TOGETHER_MS = 60_000
const COUNTS_AFTER_MS = 1_000
const MAX_ENTRIES = 2_000

export interface Auditor {
  /** Returns the guard's `onConnect` callback. It rejects with EgressError if the audit log is full. */
  readonly audit: (kind: OutboundConnectionKind) => (connection: OutboundConnection) => Promise<void>
  /** Resolves when all counts are stored. Never rejects. */
  settle(): Promise<void>
}

interface Entry {
  readonly id: string
  readonly at: number
  count: number
  storedCount: number
  /** Resolves when the entry is durable. */
  readonly stored: Promise<void>
}

export function createAuditor(
  { db, now, log, emit }: Pick<EngineDependencies, 'db' | 'now' | 'log' | 'emit'>,
  interactionId: string,
): Auditor {
  const newest = new Map<string, Entry>()
  let entries: Promise<number> | undefined
  let counting: NodeJS.Timeout | undefined
  let flushing: Promise<void> = Promise.resolve()

  /** Number of entries including the new one and those of earlier workers. */
  async function next(): Promise<number> {
    const counted = (entries ?? retryWhileDatabaseDown(MAX_OUTAGE_MS, () => countAudit(db, interactionId))).then(
      (count) => count + 1,
    )
    entries = counted
    // A later connection may succeed: count again then.
    counted.catch(() => {
      if (entries === counted) entries = undefined
    })
    return counted
  }

  async function store(
    id: string,
    at: number,
    kind: OutboundConnectionKind,
    connection: OutboundConnection,
  ): Promise<void> {
    const number = await next()
    if (number <= MAX_ENTRIES)
      return retryWhileDatabaseDown(MAX_OUTAGE_MS, () =>
        insertAudit(db, interactionId, { id, at, kind, ...connection }),
      )
    if (number === MAX_ENTRIES + 1) {
      await insertAudit(db, interactionId, { id, at, kind, host: '*', port: 0, outcome: 'refused' })
    }
    throw new EgressError(
      'refused',
      'This run has connected to too many hosts; only hosts that it already used are allowed.',
    )
  }

  async function record(kind: OutboundConnectionKind, connection: OutboundConnection): Promise<void> {
    emit({ type: 'contact_made', kind, outcome: connection.outcome })
    const key = [kind, connection.host, connection.port, connection.outcome].join(' ')
    const at = now()
    const known = newest.get(key)
    if (known && (at - known.at < TOGETHER_MS || ((await entries) ?? 0) >= MAX_ENTRIES)) {
      known.count++
      counting ??= setTimeout(flush, COUNTS_AFTER_MS).unref()
      return known.stored
    }
    const id = newId('aud', at)
    const stored = store(id, at, kind, connection)
    newest.set(key, { id, at, count: 1, storedCount: 1, stored })
    stored.catch(() => newest.delete(key))
    return stored
  }

  function flush(): void {
    clearTimeout(counting)
    counting = undefined
    flushing = flushing.then(async () => {
      for (const entry of newest.values()) {
        if (entry.count === entry.storedCount) continue
        const { id, count } = entry
        await recountAudit(db, interactionId, id, count)
        entry.storedCount = count
      }
    })
    flushing = flushing.catch((error) =>
      log.warn({ err: error, interactionId }, 'could not store connection counts of the audit log'),
    )
  }

  return {
    audit: (kind) => (connection) => record(kind, connection),
    settle() {
      flush()
      return flushing
    },
  }
}
