/**
 * Retries of model calls: exponential backoff with full jitter, and at least `Retry-After`. Never after the first delta,
 * because callers have seen it. Only the abort signal limits the waiting.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { ABORTED } from './failures.ts'
import type { ModelDelta, ModelOutcome } from './port.ts'

/** Clock, random numbers and sleeping. Tests replace them. */
export interface Timing {
  readonly now: () => number
  /** 0 ≤ n < 1 */
  readonly random: () => number
  /** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Maximum delay of setTimeout: with a longer one it fires immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const REAL_TIMING: Timing = {
  now: Date.now,
  random: Math.random,
  sleep: (ms, signal) => delay(Math.min(ms, LONGEST_TIMER_MS), undefined, { signal }).catch(() => {}),
}

/** Outcome of one attempt. `retryAfterMs`: the delay that the provider asked for. */
export type AttemptOutcome =
  | Extract<ModelOutcome, { ok: true }>
  | (Extract<ModelOutcome, { ok: false }> & { readonly retryAfterMs?: number })

export type Attempt = (onDelta: (delta: ModelDelta) => void, signal: AbortSignal) => Promise<AttemptOutcome>

/** Called before each wait. `failure` is the message of the failed attempt. */
export type OnRetry = (retry: { readonly tries: number; readonly waitMs: number; readonly failure: string }) => void

export interface RetryPolicy {
  /** At least 1. */
  readonly maxTries: number
  readonly timing: Timing
  readonly onRetry?: OnRetry
}

export const DEFAULT_MAX_TRIES = 3
/** Milliseconds without a byte after which a call fails as stalled. */
export const DEFAULT_IDLE_TIMEOUT_MS = 60_000

const FIRST_BACKOFF_MS = 500
const LONGEST_BACKOFF_MS = 8_000

export async function callWithRetries(
  attempt: Attempt,
  policy: RetryPolicy,
  onDelta: (delta: ModelDelta) => void,
  signal: AbortSignal,
): Promise<ModelOutcome> {
  let spoken = false
  const speak = (delta: ModelDelta): void => {
    spoken ||= delta.type !== 'ignored'
    onDelta(delta)
  }
  for (let tries = 1; ; tries++) {
    if (signal.aborted) return { ok: false, failure: ABORTED, tokens: undefined }
    const outcome = await attempt(speak, signal)
    if (outcome.ok) return outcome
    const { failure, tokens, retryAfterMs } = outcome
    if (!failure.retryable || spoken || tries >= policy.maxTries) {
      const message = tries > 1 ? `${failure.message} (${tries} tries)` : failure.message
      return { ok: false, failure: { ...failure, message }, tokens }
    }
    if (tokens) onDelta({ type: 'retried', tokens })
    const waitMs = waitBefore(tries, retryAfterMs, policy.timing.random)
    policy.onRetry?.({ tries, waitMs, failure: failure.message })
    await policy.timing.sleep(waitMs, signal)
  }
}

/** Jitter is added to `Retry-After`, so that runs with the same `Retry-After` do not retry at the same time. */
function waitBefore(tries: number, retryAfterMs: number | undefined, random: () => number): number {
  const backoff = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1))
  return (retryAfterMs ?? 0) + Math.floor(random() * backoff)
}

/** Reads `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date. Undefined if missing or malformed. */
export function readRetryAfter(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  now: number,
): number | undefined {
  const precise = numberOf(headers['retry-after-ms'])
  if (precise !== undefined) return precise
  const seconds = numberOf(headers['retry-after'])
  if (seconds !== undefined) return seconds * 1000
  const date = Date.parse(String(headers['retry-after'] ?? ''))
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

function numberOf(header: string | string[] | undefined): number | undefined {
  if (typeof header !== 'string' || !/^\s*\d+(\.\d+)?\s*$/.test(header)) return undefined
  return Number(header)
}
