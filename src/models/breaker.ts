/**
 * Leaves a provider alone that failed again and again: runs then fall back, or fail, at once instead of waiting for it,
 * and it can come back without all of them upon it.
 *
 *   closed ──FAILURES calls in a row failed──▶ resting ──rest over──▶ one trial ──answered──▶ closed
 *                                                 ▲                       └──failed──▶ resting, twice as long
 *
 * Counted are calls, after all their tries, that failed by the provider's trouble before anything was said. A provider that
 * refuses a request is well.
 */
import { failed } from './failures.ts'
import type { Model, ModelFailure, ModelHealth, ModelOutcome } from './port.ts'

const FAILURES = 5
const FIRST_REST_MS = 10_000
const LONGEST_REST_MS = 60_000
const TROUBLE: ReadonlySet<ModelFailure['kind']> = new Set([
  'overloaded',
  'unreachable',
  'stalled',
  'truncated',
  'malformed',
])

export interface Breaker {
  /** Why this call must not be made. Undefined: it may, and its outcome is to be recorded. */
  admit(): ModelFailure | undefined
  /** `answered`: something of the answer came, however it ended. */
  record(outcome: ModelOutcome, answered: boolean): void
  health(): ModelHealth
}

export interface BreakerOptions {
  /** Wall clock, milliseconds since 1970. */
  readonly now: () => number
  /** Told when the provider is left alone, and when it is back. */
  readonly onChange?: (health: ModelHealth) => void
}

export function createBreaker({ now, onChange }: BreakerOptions): Breaker {
  let failures = 0
  let rests = 0
  let restsUntil = 0
  let trying = false
  let tried = false
  let last: { readonly message: string; readonly at: number } | undefined

  function health(): ModelHealth {
    if (failures >= FAILURES) return { state: 'resting', failures, lastFailure: last, restsUntil }
    if (last) return { state: 'failing', failures, lastFailure: last }
    return { state: tried ? 'up' : 'untried', failures }
  }

  function rest(): void {
    restsUntil = now() + Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** rests)
    rests++
    onChange?.(health())
  }

  return {
    admit() {
      if (failures < FAILURES) return undefined
      const leftMs = restsUntil - now()
      if (leftMs <= 0 && !trying) {
        trying = true
        return undefined
      }
      const when = leftMs > 0 ? `in ${Math.ceil(leftMs / 1000)} s` : 'when one trial call has shown that it is back'
      return failed(
        'overloaded',
        `The model provider failed ${failures} times in a row, so it is left alone for now; it is asked again ${when}. Last: ${last?.message}`,
      )
    },
    record(outcome, answered) {
      trying = false
      if (!outcome.ok && outcome.failure.kind === 'aborted' && !answered) return
      tried = true
      const rested = failures >= FAILURES
      if (!outcome.ok && !answered && TROUBLE.has(outcome.failure.kind)) {
        failures++
        last = { message: outcome.failure.message, at: now() }
        if (failures >= FAILURES && restsUntil <= now()) rest()
        return
      }
      failures = 0
      rests = 0
      restsUntil = 0
      last =
        outcome.ok || outcome.failure.kind === 'aborted' ? undefined : { message: outcome.failure.message, at: now() }
      if (rested) onChange?.(health())
    },
    health,
  }
}

/** The model behind a breaker, which several models of one provider may share. */
export function guardModel(model: Model, breaker: Breaker): Model {
  return {
    async call(request, onDelta, signal) {
      const failure = breaker.admit()
      if (failure) return { ok: false, failure, tokens: undefined }
      let answered = false
      const outcome = await model.call(
        request,
        (delta) => {
          answered = true
          onDelta(delta)
        },
        signal,
      )
      breaker.record(outcome, answered || outcome.ok)
      return outcome
    },
  }
}
