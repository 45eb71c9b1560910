/**
 * A worker's slots: the number of runs that work at once. A run that waits for a person releases its slot. When it resumes,
 * it takes the next free slot before any new run.
 */
import type { WorkerSlot } from '../run/run.ts'

export interface Slots {
  /** Undefined if no slot is free. */
  take(): Slot | undefined
}

export interface Slot extends WorkerSlot {
  isHeld(): boolean
}

export function createSlots(most: number): Slots {
  let free = most
  const waiting: (() => void)[] = []

  function passOn(): void {
    const next = waiting.shift()
    if (next) next()
    else free++
  }

  function waitForOne(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = () => {
      const at = waiting.indexOf(resolve)
      if (at < 0) return // it has it already
      waiting.splice(at, 1)
      reject(signal.reason)
    }
    waiting.push(resolve)
    signal.addEventListener('abort', onAbort)
    return promise.finally(() => signal.removeEventListener('abort', onAbort))
  }

  return {
    take() {
      if (free === 0) return undefined
      free--
      let held = true
      return {
        isHeld: () => held,
        release() {
          if (!held) return
          held = false
          passOn()
        },
        async reacquire(signal) {
          signal.throwIfAborted()
          if (held) return
          if (free > 0) free--
          else await waitForOne(signal)
          held = true
        },
      }
    },
  }
}
