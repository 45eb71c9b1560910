/**
 * Tools for the rows of the proof. Each row is a test in `test/prove`: short in every test run, at full length in
 * `script/prove`.
 *
 *     const random = seeded('R10')                       // prints its seed; ERRAND_SEED replays it
 *     for (let i = 0; i < rounds(500); i++) …            // 500 under script/prove, 50 otherwise
 *     figure('R10', 'slowest cancel, ms', slowest)       // is in the report
 */
import { appendFileSync } from 'node:fs'

const WHOLE = process.env.PROVE !== undefined
const SEED_MODULUS = 2 ** 32

/** Number of repetitions: `full` under `script/prove`, otherwise `short`, which defaults to a tenth. */
export function rounds(full: number, short = Math.max(1, Math.round(full / 10))): number {
  return WHOLE ? full : short
}

/** Records a measured value for the report of `script/prove`. `row`: the row's id, such as `R10`. */
export function figure(row: string, name: string, value: number | string): void {
  const line = JSON.stringify({ row, name, value })
  if (process.env.PROVE_FIGURES) appendFileSync(process.env.PROVE_FIGURES, `${line}\n`)
}

export interface Random {
  readonly seed: number
  /** A random number, 0 ≤ n < 1. */
  next(): number
  /** A random integer, `from` ≤ n ≤ `to`. */
  whole(from: number, to: number): number
  pick<T>(from: readonly T[]): T
}

/** Creates a random generator and prints its seed. ERRAND_SEED replays it. */
export function seeded(row: string): Random {
  const seed = Number(process.env.ERRAND_SEED ?? Math.floor(Math.random() * SEED_MODULUS))
  console.log(`${row}: ERRAND_SEED=${seed}`)
  return randomOf(seed)
}

/** The mulberry32 generator: small, and good enough for choosing faults. */
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
