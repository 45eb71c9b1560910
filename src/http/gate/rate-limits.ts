/**
 * Rate limits of a project: one for new interactions, one for all other calls. A window begins with its first call and admits
 * exactly `limit` calls. Refused calls are not counted, so waiting for `Retry-After` always works.
 *
 * A creation is counted before it is known whether it creates anything. If it does not, it is refunded and counted as a call,
 * as long as the calls have room: refused requests neither use up creations nor are free.
 */
import type { Limits } from '../../domain/limits.ts'
import { DatabaseUnavailable } from '../../store/port.ts'
import { type CreateCounter, createMemoryCounter } from './rate-counters.ts'

const WINDOW_S = 60

export type RateClass = 'interactions' | 'calls'

export interface Quota {
  readonly class: RateClass
  readonly admitted: boolean
  readonly limit: number
  readonly remaining: number
  /** Milliseconds since the Unix epoch, by this process's clock. */
  readonly windowEnd: number
  /** The counter's own identifier of the window. */
  readonly window: number
}

export interface RateLimits {
  admit(projectId: string, rateClass: RateClass): Promise<Quota>
  /**
   * Refunds a creation that created nothing and counts it as a call. Returns the quota that it now counts against, which is
   * the same one if the calls have no room or the database is down.
   */
  refund(projectId: string, quota: Quota): Promise<Quota>
  /** Response headers for a call that counted against `quota`. */
  headers(quota: Quota): Record<string, string>
  /** Seconds until the window ends, at least 1. */
  secondsLeft(quota: Quota): number
}

export function createRateLimits(
  { interactionsPerMinute, callsPerMinute }: Pick<Limits, 'interactionsPerMinute' | 'callsPerMinute'>,
  createCounter: CreateCounter = createMemoryCounter,
): RateLimits {
  const most: Readonly<Record<RateClass, number>> = { interactions: interactionsPerMinute, calls: callsPerMinute }
  const count = (name: RateClass) => createCounter({ name, limit: most[name], windowMs: WINDOW_S * 1000 })
  const counters = { interactions: count('interactions'), calls: count('calls') }
  const policy = Object.entries(most)
    .map(([name, limit]) => `"${name}";q=${limit};w=${WINDOW_S}`)
    .join(', ')

  async function admit(projectId: string, rateClass: RateClass): Promise<Quota> {
    const { endsInMs, ...count } = await counters[rateClass].take(projectId)
    return { class: rateClass, limit: most[rateClass], windowEnd: Date.now() + endsInMs, ...count }
  }

  function secondsLeft(quota: Quota): number {
    return Math.max(1, Math.ceil((quota.windowEnd - Date.now()) / 1000))
  }

  return {
    admit,
    secondsLeft,
    async refund(projectId, quota) {
      try {
        const call = await admit(projectId, 'calls')
        if (!call.admitted) return quota
        // The counter refunds only into the same window: a later one would admit one call too many.
        await counters.interactions.refund(projectId, quota.window)
        return call
      } catch (error) {
        if (error instanceof DatabaseUnavailable) return quota
        throw error
      }
    },
    headers(quota) {
      const reset = secondsLeft(quota)
      return {
        RateLimit: `"${quota.class}";r=${quota.remaining};t=${reset}`,
        'RateLimit-Policy': policy,
        'X-RateLimit-Limit': String(quota.limit),
        'X-RateLimit-Remaining': String(quota.remaining),
        'X-RateLimit-Reset': String(reset),
      }
    },
  }
}
