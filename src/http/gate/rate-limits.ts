/**
 * How often a project may call: creations of interactions and all other calls, each with its own count in a window that
 * begins with the first call in it. Exactly `limit` are admitted a window; a refused call is not counted, so that
 * waiting out `Retry-After` always helps.
 *
 * A creation is counted when it comes, before anyone knows what will become of it. Where nothing was created, it is
 * moved over to the calls (`giveBack`) while there is room: refused requests neither use up creations nor come for free.
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
  /** Milliseconds since 1970, by this process's clock. */
  readonly windowEnd: number
  /** As its counter names the window. */
  readonly window: number
}

export interface RateLimits {
  admit(projectId: string, rateClass: RateClass): Promise<Quota>
  /**
   * The creation that `quota` admitted created nothing. The quota that the call counts against now; the same where there is
   * no room, or the database is away.
   */
  giveBack(projectId: string, quota: Quota): Promise<Quota>
  /** For the answer to a call that counted against `quota`. */
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
    async giveBack(projectId, quota) {
      try {
        const call = await admit(projectId, 'calls')
        if (!call.admitted) return quota
        // Into a later window nothing is given back: it would admit one too many there.
        await counters.interactions.giveBack(projectId, quota.window)
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
