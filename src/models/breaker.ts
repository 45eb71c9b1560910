/**
 * Circuit breaker for a provider: after repeated failures no calls are made for a while. Runs then fall back or fail
 * immediately, and the provider can recover without load.
 *
 *   closed ──FAILURES calls in a row failed──▶ resting ──rest over──▶ one trial ──answered──▶ closed
 *                                                 ▲                       └──failed──▶ resting, twice as long
 *
 * A call counts as failed, after its retries, if the provider caused the failure before the first delta. A refused request
 * is no failure of the provider.
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
  /** Returns a failure if the call must not be made. Undefined: make the call and `record` its outcome. */
  admit(): ModelFailure | undefined
  /** `answered`: a delta was received, however the call ended. */
  record(outcome: ModelOutcome, answered: boolean): void
  health(): ModelHealth
}

export interface BreakerOptions {
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
  /** Called when the breaker opens and when it closes. */
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

/** Adds a breaker to a model. Several models of one provider may share it. */
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
