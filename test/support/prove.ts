/**
 * The rows of the proof: each is a test in `test/prove`, short in every run of the suite and whole under `script/prove`.
 *
 *     const random = seeded('R10')                       // prints its seed; ERRAND_SEED replays it
 *     for (let i = 0; i < rounds(500); i++) …            // 500 under script/prove, 50 otherwise
 *     figure('R10', 'slowest cancel, ms', slowest)       // is in the report
 */
import { appendFileSync } from 'node:fs'

const WHOLE = process.env.PROVE !== undefined
const SEED_MODULUS = 2 ** 32

/** Number of repetitions: `full` times under `script/prove`, else `short`, by default a tenth. */
export function rounds(full: number, short = Math.max(1, Math.round(full / 10))): number {
  return WHOLE ? full : short
}

/** Notes what was measured, for the report that `script/prove` writes. `row`: as in `R10`. */
export function figure(row: string, name: string, value: number | string): void {
  const line = JSON.stringify({ row, name, value })
  if (process.env.PROVE_FIGURES) appendFileSync(process.env.PROVE_FIGURES, `${line}\n`)
}

export interface Random {
  readonly seed: number
  /** A number of 0 ≤ n < 1. */
  next(): number
  /** A whole number of `from` ≤ n ≤ `to`. */
  whole(from: number, to: number): number
  pick<T>(from: readonly T[]): T
}

/** A source of chance that its printed seed replays. */
export function seeded(row: string): Random {
  const seed = Number(process.env.ERRAND_SEED ?? Math.floor(Math.random() * SEED_MODULUS))
  console.log(`${row}: ERRAND_SEED=${seed}`)
  return randomOf(seed)
}

/** mulberry32: small, and good enough to choose faults by. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / SEED_MODULUS
  }
  return {
    seed,
    next,
    whole: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick: (from) => from[Math.floor(next() * from.length)]!,
  }
}
