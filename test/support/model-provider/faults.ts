/** Faults of a model's calls, chosen by seed. The scripted provider and the simulation share the choice. */
import { createHash } from 'node:crypto'
import { type Random, randomOf } from '../prove.ts'
import { type Fault, fragmentsOf, type Reply } from './script.ts'

/** Shares of all calls, 0 to 1, that get each kind of fault. */
export interface FaultShares {
  /** Status 503 before the answer. */
  readonly refused?: number
  /** The stream breaks after any number of fragments, also none. */
  readonly broken?: number
  /** The output limit ends the answer after any fragment, also within a call's arguments. */
  readonly cut?: number
  /** A normal end without any output. */
  readonly empty?: number
}

const KINDS = ['refused', 'broken', 'cut', 'empty'] as const
const BREAKS = ['truncate-after', 'reset-after', 'error-event-after'] as const

/** Chooses the fault of one call. `fragments`: number of fragments of its answer. */
export function drawFault(random: Random, shares: FaultShares, fragments: number): Fault | undefined {
  let drawn = random.next()
  const kind = KINDS.find((name) => {
    drawn -= shares[name] ?? 0
    return drawn < 0
  })
  if (kind === 'refused') return 'status:503'
  if (kind === 'broken') return `${random.pick(BREAKS)}:${random.whole(0, fragments)}`
  if (kind === 'cut') return `length-after:${random.whole(1, Math.max(1, fragments))}`
  return kind
}

export interface SeededFaults extends FaultShares {
  readonly seed: number
}

/**
 * Adds faults to replies. The choice depends on the seed, the request and the attempt, not on the order of concurrent
 * requests, so the same seed breaks the same calls. Replies with a fault of their own are unchanged.
 */
export function createFaults({ seed, ...shares }: SeededFaults): (reply: Reply, body: string) => Reply {
  const attempts = new Map<string, number>()
  return (reply, body) => {
    if (reply.fault || reply.raw !== undefined) return reply
    const digest = createHash('sha256').update(body).digest()
    const name = digest.toString('base64')
    const attempt = attempts.get(name) ?? 0
    attempts.set(name, attempt + 1)
    const random = randomOf((digest.readUInt32LE(0) ^ seed) + attempt)
    const fault = drawFault(random, shares, fragmentsOf(reply, String).length)
    return fault ? { ...reply, fault } : reply
  }
}
