/** Ends that no worker writes: cancellation, and queue timeouts. Fenced: a worker that still writes loses its claim. */
import type { RunError } from '../../domain/errors.ts'
import type { StopReason, StoredEvent, TerminalStatus } from '../../domain/event.ts'
import { encodeEvent } from '../../domain/event.ts'
import type { Usage } from '../../domain/usage.ts'
import { endFromOutside } from '../../store/events.ts'
import { wasMade } from '../../store/port.ts'
import type { CountedFor } from '../../store/usage.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { terminalEvents } from '../run/settle.ts'

export interface OutsideEnd {
  readonly status: TerminalStatus
  readonly stopReason?: StopReason
  readonly error?: RunError
  readonly usage: Usage
  readonly countedFor: CountedFor
}

/** Writes the end and publishes it. False if the interaction has already ended (or, with `epoch`, was claimed since). */
export async function endOutside(
  deps: EngineDependencies,
  id: string,
  end: OutsideEnd,
  epoch?: number,
): Promise<boolean> {
  const events = terminalEvents(id, end, end.usage)
  const result = await deps.db.write(endFromOutside(deps.db, id, { ...end, events, at: deps.now() }, epoch))
  if (!wasMade(result, 'fence')) return false
  const lastSeq = Number(result.rows[0]![0]!.last_seq)
  const stored: StoredEvent[] = events.map((event, i) => ({
    seq: lastSeq - events.length + 1 + i,
    type: event.type,
    data: encodeEvent(event),
  }))
  deps.hub.publish(id, stored)
  const { status, stopReason, error, usage } = end
  deps.emit({ type: 'ended', interactionId: id, status, stopReason, code: error?.code, usage, webhook: true })
  return true
}
