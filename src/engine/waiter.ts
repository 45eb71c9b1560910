/** Waiting for a hint that the log of an interaction has changed, with polling for hints that never arrive. */

/** Longest database outage that a follower or a waiting caller survives, in milliseconds. */
export const OUTAGE_MS = 60_000

export interface Waiter {
  /** Ends the current wait. Does nothing if there is none. */
  wake(): void
  /** Resolves at `wake`, or after the poll interval; then it has called `onPoll`. */
  wait(onPoll: () => void): Promise<void>
}

export function createWaiter(pollMs: number): Waiter {
  let wake: (() => void) | undefined
  return {
    wake: () => wake?.(),
    async wait(onPoll) {
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      const timer = setTimeout(() => {
        onPoll()
        resolve()
      }, pollMs)
      await promise
      clearTimeout(timer)
      wake = undefined
    },
  }
}
