/**
 * What counts calls for the rate limits: in this process, or in the database that several nodes share.
 *
 * Shared counts are exact: no node holds calls in reserve, since those that it does not use would be missing elsewhere. So a
 * call asks the database once more; what comes while a count is under way goes into the next, and however many calls a project
 * makes at once, a node has one statement on its way for them. Beside looking up the key that is one round trip more for a call
 * alone, and with 32 at once a third of its cost. Rejected: counting in the query that looks the key up. Alone it is quicker (0.7
 * times), but nothing of it can be put together, and at 32 at once, each waiting for the project's row, it is slower (1.2 times).
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Database } from '../../store/port.ts'
import { countCalls, uncountCall } from '../../store/rate-windows.ts'

export interface Count {
  readonly admitted: boolean
  readonly remaining: number
  readonly endsInMs: number
  /** Names the window, for `giveBack`. */
  readonly window: number
}

/** One class of calls, for each project a window of its own. */
export interface RateCounter {
  /** Counts a call where the window has room. Rejects with DatabaseUnavailable. */
  take(projectId: string): Promise<Count>
  /** Takes a call out of its window again; nothing where that is over. */
  giveBack(projectId: string, window: number): Promise<void>
}

export interface CounterOptions {
  /** Of calls. */
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
    async giveBack(projectId, window) {
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
    /** By project: those that wait for the count that is under way. */
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
      giveBack: (projectId, window) => uncountCall(db, { projectId, class: name }, window),
    }
  }
}
