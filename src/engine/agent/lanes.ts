/** Runs calls in order, several at the same time if their lanes allow it. */
import type { Lane } from '../../tools/port.ts'

/** Maximum number of calls that run at the same time. */
const MAX_RUNNING = 6

export interface LanedCall {
  readonly callId: string
  readonly lane: Lane
}

/** Whether a call may start beside the running ones. */
export function mayStart(lane: Lane, running: readonly LanedCall[]): boolean {
  const isRunning = (other: Lane) => running.some((call) => call.lane === other)
  if (lane === 'alone' || isRunning('alone')) return running.length === 0
  return running.length < MAX_RUNNING && (lane === 'shared' || !isRunning(lane))
}

/**
 * Starts the calls in order, each as soon as it may run beside those that run. Returns their results by call id. If a call
 * throws, calls `onFailure` and starts no other. Then rejects with the first error when all have ended.
 */
export async function runInLanes<T extends LanedCall, R>(
  calls: readonly T[],
  perform: (call: T) => Promise<R>,
  onFailure: (error: unknown) => void,
): Promise<ReadonlyMap<string, R>> {
  const results = new Map<string, R>()
  const failures: unknown[] = []
  const running = new Map<T, Promise<void>>()

  async function start(call: T): Promise<void> {
    try {
      results.set(call.callId, await perform(call))
    } catch (error) {
      failures.push(error)
      onFailure(error)
    }
    running.delete(call)
  }

  for (const call of calls) {
    while (failures.length === 0 && !mayStart(call.lane, [...running.keys()])) await Promise.race(running.values())
    if (failures.length > 0) break
    running.set(call, start(call))
  }
  await Promise.all(running.values())
  if (failures.length > 0) throw failures[0]
  return results
}
