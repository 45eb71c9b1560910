/**
 * How often a project may call: creations of interactions and all other calls, each with its own count in a window that
 * begins with the first call in it. Exactly `limit` are admitted a window; a refused call is not counted, so that
 * waiting out `Retry-After` always helps.
 *
 * A creation is counted when it comes, before anyone knows what will become of it. Where nothing was created, it is
 * moved over to the calls (`giveBack`) while there is room: refused requests neither use up creations nor come for free.
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Limits } from '../domain/limits.ts'

const WINDOW_S = 60

export type RateClass = 'interactions' | 'calls'

export interface Quota {
  readonly class: RateClass
  readonly admitted: boolean
  readonly limit: number
  readonly remaining: number
  /** Milliseconds since 1970. */
  readonly windowEnd: number
}

export interface RateLimits {
  admit(projectId: string, rateClass: RateClass): Promise<Quota>
  /** The creation that `quota` admitted created nothing. The quota that the call counts against now. */
  giveBack(projectId: string, quota: Quota): Promise<Quota>
  /** For the answer to a call that counted against `quota`. */
  headers(quota: Quota): Record<string, string>
  /** Seconds until the window ends, at least 1. */
  secondsLeft(quota: Quota): number
}

export function createRateLimits(limits: Pick<Limits, 'interactionsPerMinute' | 'callsPerMinute'>): RateLimits {
  const counters = {
    interactions: new RateLimiterMemory({ points: limits.interactionsPerMinute, duration: WINDOW_S }),
    calls: new RateLimiterMemory({ points: limits.callsPerMinute, duration: WINDOW_S }),
  }
  const policy = Object.entries(counters)
    .map(([name, { points }]) => `"${name}";q=${points};w=${WINDOW_S}`)
    .join(', ')

  async function admit(projectId: string, rateClass: RateClass): Promise<Quota> {
    const counter = counters[rateClass]
    try {
      return quotaOf(rateClass, counter.points, await counter.consume(projectId), true)
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      await counter.reward(projectId)
      return quotaOf(rateClass, counter.points, refusal, false)
    }
  }

  function secondsLeft(quota: Quota): number {
    return Math.max(1, Math.ceil((quota.windowEnd - Date.now()) / 1000))
  }

  return {
    admit,
    secondsLeft,
    async giveBack(projectId, quota) {
      const call = await admit(projectId, 'calls')
      if (!call.admitted) return quota
      // Into a later window nothing is given back: it would admit one too many there.
      if (Date.now() < quota.windowEnd) await counters.interactions.reward(projectId)
      return call
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

function quotaOf(rateClass: RateClass, limit: number, state: RateLimiterRes, admitted: boolean): Quota {
  return {
    class: rateClass,
    admitted,
    limit,
    remaining: state.remainingPoints,
    windowEnd: Date.now() + state.msBeforeNext,
  }
}
