/**
 * Limits what each project has in flight in this process: response bytes that callers have not read, request body bytes, and
 * streams (event streams, waiting calls, downloads, uploads). Above a limit, only that project's calls are refused, with
 * `rate_limited`: no project can use up the memory that all share.
 */
import { ErrandError } from '../../domain/errors.ts'
import type { Limits } from '../../domain/limits.ts'

export type InFlightLimits = Pick<Limits, 'responseBytesPerProject' | 'uploadBytesPerProject' | 'streamsPerProject'>
export type InFlightKind = 'responseBytes' | 'uploadBytes' | 'streams'

/** The part of one request in what its project has in flight. */
export interface Share {
  /**
   * Adds an amount. Throws ErrandError `rate_limited`, and adds nothing, if the project would exceed its limit. A request
   * that is the only one with this kind is never refused: one response may be larger than the limit.
   */
  take(kind: InFlightKind, amount: number): void
  /** Sets the amount, up or down. Throws like `take`. */
  set(kind: InFlightKind, amount: number): void
  /** Waits for its turn to build a large response: one at a time per owner, because it takes several times its size. */
  enter(): Promise<void>
  /** Ends the turn. Idempotent. `release` without a kind also does it. */
  leave(): void
  /** Releases the request's amount of one kind, or of all kinds. Idempotent. */
  release(kind?: InFlightKind): void
}

export interface InFlight {
  /** `owner`: the id of a project, or of a user of the console. */
  open(owner: string): Share
}

/** Half the time after which a caller that reads nothing is disconnected. */
const RETRY_AFTER_S = 10
const KINDS: readonly InFlightKind[] = ['responseBytes', 'uploadBytes', 'streams']

type Amounts = Record<InFlightKind, number>

export function createInFlight(limits: InFlightLimits): InFlight {
  const owners = new Map<string, Amounts & { shares: number }>()
  /** By owner: resolves when the owner's last turn ends. */
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
