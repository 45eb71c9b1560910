/**
 * Counters for the rate limits: in this process, or in the database that several nodes share.
 *
 * Shared counts are exact: no node reserves calls, because other nodes would miss those that it does not use. A single call costs
 * one more round trip to the database. Concurrent calls of a project are batched: a node has one statement in flight per project,
 * and calls that arrive meanwhile go into the next one. Rejected: counting in the query that looks up the key. It is faster for
 * a single call (0.7 times) but can't be batched, so 32 concurrent calls, which wait for the same row, are slower (1.2 times).
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Database } from '../../store/port.ts'
import { countCalls, uncountCall } from '../../store/rate-windows.ts'

export interface Count {
  readonly admitted: boolean
  readonly remaining: number
  readonly endsInMs: number
  /** Identifies the window, for `refund`. */
  readonly window: number
}

/** Counts one class of calls, with a window per project. */
export interface RateCounter {
  /** Counts a call if the window has room. Rejects with DatabaseUnavailable. */
  take(projectId: string): Promise<Count>
  /** Removes a call from its window. Does nothing if the window has ended. */
  refund(projectId: string, window: number): Promise<void>
}

export interface CounterOptions {
  /** Name of the class of calls. */
  readonly name: string
  readonly limit: number
  readonly windowMs: number
}

export type CreateCounter = (options: CounterOptions) => RateCounter

export const createMemoryCounter: CreateCounter = ({ limit, windowMs }) => {
  const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
  const countOf = (state: RateLimiterRes, admitted: boolean): Count => {
    const { remainingPoints: remaining, msBeforeNext: endsInMs } = state
    return { admitted, remaining, endsInMs, window: Date.now() + endsInMs }
  }
  return {
    async take(projectId) {
      try {
        return countOf(await limiter.consume(projectId), true)
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal
        await limiter.reward(projectId)
        return countOf(refusal, false)
      }
    },
    async refund(projectId, window) {
      if (Date.now() < window) await limiter.reward(projectId)
    },
  }
}

interface Waiting {
  readonly resolve: (count: Count) => void
  readonly reject: (error: unknown) => void
}

export function createSharedCounter(db: Database): CreateCounter {
  return ({ name, limit, windowMs }) => {
    /** Calls by project that wait for the count in flight. */
    const queues = new Map<string, Waiting[]>()

    async function countAll(projectId: string, queue: Waiting[]): Promise<void> {
      while (queue.length > 0) {
        const batch = queue.splice(0)
        try {
          const key = { projectId, class: name }
          const { granted, used, ...rest } = await countCalls(db, key, batch.length, { limit, windowMs })
          for (const [i, { resolve }] of batch.entries()) {
            const behind = Math.max(0, granted - 1 - i)
            resolve({ admitted: i < granted, remaining: limit - used + behind, ...rest })
          }
        } catch (error) {
          for (const { reject } of batch) reject(error)
        }
      }
      queues.delete(projectId)
    }

    return {
      take(projectId) {
        return new Promise((resolve, reject) => {
          const queue = queues.get(projectId)
          if (queue) {
            queue.push({ resolve, reject })
            return
          }
          const first = [{ resolve, reject }]
          queues.set(projectId, first)
          void countAll(projectId, first)
        })
      },
      refund: (projectId, window) => uncountCall(db, { projectId, class: name }, window),
    }
  }
}
