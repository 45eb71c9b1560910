/**
 * Follows an interaction's log from any event to its end. Serves blocking POST, SSE streams and resumed streams.
 *
 * Reads pages by `seq > last` until it has caught up, then takes events from the hub while they continue the log without a
 * gap. After a gap, or with too many held events, it reads from the store again. So a follower holds at most MAX_HELD_BYTES,
 * however slow its consumer is, and never misses or repeats an event.
 */
import type { StoredEvent } from '../domain/event.ts'
import { readEvents, readProgress } from '../store/events.ts'
import type { Database } from '../store/port.ts'
import { retryWhileDatabaseDown } from '../store/retry-while-down.ts'
import type { Hub } from './hub.ts'
import { createWaiter, OUTAGE_MS } from './waiter.ts'

const MAX_HELD_BYTES = 64 * 1024
/** Rows of the first page, because one row may be large. Later pages are sized to about MAX_HELD_BYTES. */
const FIRST_PAGE = 1
const MAX_PAGE = 500

export interface FollowOptions {
  readonly db: Database
  readonly hub: Hub
  /** Poll interval in milliseconds, for events that other processes write. */
  readonly pollMs: number
}

export async function* followLog(
  { db, hub, pollMs }: FollowOptions,
  interactionId: string,
  after: number,
  signal: AbortSignal,
  known: readonly StoredEvent[] = [],
): AsyncGenerator<readonly StoredEvent[]> {
  let last = after
  let behind = known.length === 0
  let pageRows = FIRST_PAGE
  let held = [...known]
  let heldBytes = 0
  const waiter = createWaiter(pollMs)

  const unsubscribe = hub.subscribe(interactionId, (events) => {
    for (const event of events) heldBytes += event.data.length
    // No events: another node wrote some.
    if (heldBytes > MAX_HELD_BYTES || events.length === 0) {
      held = []
      behind = true
    }
    if (!behind) held.push(...events)
    waiter.wake()
  })
  signal.addEventListener('abort', waiter.wake)

  try {
    while (!signal.aborted) {
      const read = behind
      const events = read ? await readPage() : takeHeld()
      if (events.length > 0) {
        last = events.at(-1)!.seq
        yield events
        if (events.at(-1)!.type === 'completed') return
      } else if (!behind) {
        if (read && held.length === 0 && (await isOver())) return
        await nextHint()
      }
    }
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', waiter.wake)
  }

  async function readPage(): Promise<readonly StoredEvent[]> {
    // Events published during the read must not be lost: hold them from here on.
    held = []
    heldBytes = 0
    behind = false
    const page = await retryWhileDatabaseDown(OUTAGE_MS, () => readEvents(db, interactionId, last, pageRows), signal)
    if (page.length === pageRows) {
      behind = true
      held = []
      const bytes = page.reduce((sum, event) => sum + event.data.length, 0)
      pageRows = Math.max(1, Math.min(MAX_PAGE, 4 * pageRows, Math.floor((MAX_HELD_BYTES * page.length) / (bytes + 1))))
    }
    return page
  }

  /** True if no event will follow: the log was read to its end, or was removed. */
  async function isOver(): Promise<boolean> {
    const row = await retryWhileDatabaseDown(OUTAGE_MS, () => readProgress(db, interactionId), signal)
    return !row || (row.status !== 'running' && row.lastSeq <= last)
  }

  /** The held events after `last`. Empty if there is a gap; then the log is read instead. */
  function takeHeld(): readonly StoredEvent[] {
    const events = held[0]?.seq === last + 1 ? held : held.filter((event) => event.seq > last)
    held = []
    heldBytes = 0
    if (events.length === 0) return events
    const contiguous = events[0]!.seq === last + 1 && events.at(-1)!.seq === last + events.length
    if (contiguous) return events
    behind = true
    return []
  }

  async function nextHint(): Promise<void> {
    if (held.length > 0 || signal.aborted) return
    await waiter.wait(() => {
      behind = true
    })
  }
}
