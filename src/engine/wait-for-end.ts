/** Waits until an interaction has ended, without reading its log. */
import { readProgress } from '../store/events.ts'
import { retryWhileDatabaseDown } from '../store/retry-while-down.ts'
import type { FollowOptions } from './follower.ts'

/** Maximum database outage during which waiting continues, in milliseconds. */
const OUTAGE_MS = 60_000

/** Resolves when the interaction has ended or is deleted, or when `signal` aborts. */
export async function waitForEnd(
  { db, hub, pollMs }: FollowOptions,
  interactionId: string,
  signal: AbortSignal,
): Promise<void> {
  let ended = false
  let mustRead = true
  let wake: (() => void) | undefined
  const unsubscribe = hub.subscribe(interactionId, (events) => {
    if (events.at(-1)?.type === 'completed') ended = true
    // No events: another node wrote some.
    else if (events.length === 0) mustRead = true
    else return
    wake?.()
  })
  const onAbort = () => wake?.()
  signal.addEventListener('abort', onAbort)
  try {
    while (!ended && !signal.aborted) {
      if (!mustRead) await nextHint()
      else if (await isOver()) return
    }
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', onAbort)
  }

  async function isOver(): Promise<boolean> {
    mustRead = false
    const row = await retryWhileDatabaseDown(OUTAGE_MS, () => readProgress(db, interactionId), signal)
    return row?.status !== 'running'
  }

  async function nextHint(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    wake = resolve
    const timer = setTimeout(() => {
      mustRead = true
      resolve()
    }, pollMs)
    await promise
    clearTimeout(timer)
    wake = undefined
  }
}
