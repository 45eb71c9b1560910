/** Waiting for a condition on the browser's state, which changes only with its events. */
import type { Duplex } from 'node:stream'

/**
 * Resolves with true as soon as the condition holds, and with false at the timeout, when the browser ends, or when
 * `unless` settles.
 */
export type Until = (condition: () => boolean, timeoutMs: number, unless?: Promise<unknown>) => Promise<boolean>

export interface Conditions {
  readonly until: Until
  /** Checks all waiting conditions. Call it after each event. */
  check(): void
}

export function createConditions(stream: Duplex): Conditions {
  const waiting = new Set<() => void>()
  const check = () => {
    for (const checkOne of waiting) checkOne()
  }
  stream.once('close', check)
  return {
    check,
    until(condition, timeoutMs, unless) {
      if (condition()) return Promise.resolve(true)
      return new Promise((resolve) => {
        const finish = (met: boolean) => {
          clearTimeout(timer)
          waiting.delete(checkOne)
          resolve(met)
        }
        const checkOne = () => {
          if (condition()) finish(true)
          else if (stream.destroyed) finish(false)
        }
        const timer = setTimeout(finish, timeoutMs, false)
        waiting.add(checkOne)
        const abandon = () => finish(false)
        unless?.then(abandon, abandon)
      })
    },
  }
}
