/**
 * What a project has in flight in this process: bytes of answers that its callers have not taken yet, bytes of bodies
 * that it sends, and streams (event streams, calls that wait for a run's end, downloads, uploads of files). Each has a
 * limit; over it, calls of that project alone are refused with `rate_limited`, so no project can take the memory of all.
 */
import { ErrandError } from '../../domain/errors.ts'
import type { Limits } from '../../domain/limits.ts'

export type InFlightLimits = Pick<Limits, 'responseBytesPerProject' | 'uploadBytesPerProject' | 'streamsPerProject'>
export type InFlightKind = 'responseBytes' | 'uploadBytes' | 'streams'

/** What one request has in flight. */
export interface Share {
  /**
   * Adds to it. Throws ErrandError `rate_limited`, and adds nothing, where the project then has more than its limit. The
   * only request of a project that has any of a kind is never refused: one answer may be larger than the limit.
   */
  take(kind: InFlightKind, amount: number): void
  /** Makes it this amount: takes what is missing, or gives back what is over. Throws as `take`. */
  set(kind: InFlightKind, amount: number): void
  /** Waits for its turn to make a large answer: one at a time of an owner, since making one takes several times its size. */
  enter(): Promise<void>
  /** Ends its turn. Idempotent; `release` of all does it too. */
  leave(): void
  /** Gives back what the request has of one kind, or of all. Idempotent. */
  release(kind?: InFlightKind): void
}

export interface InFlight {
  /** `owner`: a project's id, or a visitor's of the console. */
  open(owner: string): Share
}

/** Half of the time after which a caller that reads nothing is dropped. */
const RETRY_AFTER_S = 10
const KINDS: readonly InFlightKind[] = ['responseBytes', 'uploadBytes', 'streams']

type Amounts = Record<InFlightKind, number>

export function createInFlight(limits: InFlightLimits): InFlight {
  const owners = new Map<string, Amounts & { shares: number }>()
  /** By owner: resolves when the last turn that was given ends. */
  const turns = new Map<string, Promise<void>>()

  return {
    open(owner) {
      const own = none()
      let total = owners.get(owner)
      let leave = () => {}
      let over = false

      function release(kind: InFlightKind): void {
        if (!total || own[kind] === 0) return
        total[kind] -= own[kind]
        own[kind] = 0
        if (KINDS.every((each) => own[each] === 0) && --total.shares === 0) owners.delete(owner)
      }

      function take(kind: InFlightKind, amount: number): void {
        total = owners.get(owner) ?? { ...none(), shares: 0 }
        if (total[kind] > own[kind] && total[kind] + amount > limits[`${kind}PerProject`]) throw tooMuch(kind, limits)
        if (amount === 0) return
        if (KINDS.every((each) => own[each] === 0)) total.shares++
        own[kind] += amount
        total[kind] += amount
        owners.set(owner, total)
      }

      return {
        take,
        set(kind, amount) {
          if (amount > own[kind]) take(kind, amount - own[kind])
          else if (amount === 0) release(kind)
          else if (total) {
            total[kind] -= own[kind] - amount
            own[kind] = amount
          }
        },
        async enter() {
          const { promise, resolve } = Promise.withResolvers<void>()
          const before = turns.get(owner)
          const until = promise.then(() => before)
          turns.set(owner, until)
          void until.then(() => turns.get(owner) === until && turns.delete(owner))
          leave = resolve
          if (over) leave()
          await before
        },
        leave: () => leave(),
        release(kind) {
          if (kind !== undefined) return release(kind)
          over = true
          leave()
          KINDS.forEach(release)
        },
      }
    },
  }
}

function none(): Amounts {
  return { responseBytes: 0, uploadBytes: 0, streams: 0 }
}

function tooMuch(kind: InFlightKind, limits: InFlightLimits): ErrandError {
  const limit = limits[`${kind}PerProject`]
  const message = {
    responseBytes: `This project has answers of more than ${limit} bytes in flight. Read those that were asked for first`,
    uploadBytes: `This project sends bodies of more than ${limit} bytes at once. Send fewer at a time`,
    streams: `This project has ${limit} streams, waiting calls and downloads open. Close some`,
  }[kind]
  return new ErrandError('rate_limited', `${message}, and try again in ${RETRY_AFTER_S} s.`, {
    retryAfterS: RETRY_AFTER_S,
  })
}
