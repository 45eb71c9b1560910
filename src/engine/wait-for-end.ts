/** Waits until an interaction has ended, without reading its log. */
import { readProgress } from '../store/events.ts'
import { retryWhileDatabaseDown } from '../store/retry-while-down.ts'
import type { FollowOptions } from './follower.ts'
import { createWaiter, OUTAGE_MS } from './waiter.ts'

/** Resolves when the interaction has ended or is deleted, or when `signal` aborts. */
export async function waitForEnd(
  { db, hub, pollMs }: FollowOptions,
  interactionId: string,
  signal: AbortSignal,
): Promise<void> {
  let ended = false
  let mustRead = true
  const waiter = createWaiter(pollMs)
  const unsubscribe = hub.subscribe(interactionId, (events) => {
    if (events.at(-1)?.type === 'completed') ended = true
    // No events: another node wrote some.
    else if (events.length === 0) mustRead = true
    else return
    waiter.wake()
  })
  signal.addEventListener('abort', waiter.wake)
  try {
    while (!ended && !signal.aborted) {
      if (mustRead) {
        if (await isOver()) return
      } else {
        await waiter.wait(() => {
          mustRead = true
        })
      }
    }
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', waiter.wake)
  }

  async function isOver(): Promise<boolean> {
    mustRead = false
    const row = await retryWhileDatabaseDown(OUTAGE_MS, () => readProgress(db, interactionId), signal)
    return row?.status !== 'running'
  }
}
