/**
 * Identifiers: a prefix for the kind of object, then 22 base62 characters. The first 8 encode the creation time in
 * milliseconds, so ids sort by age and are adjacent in an index. The other 14 are random (83 bits), so ids can't be guessed.
 */
import { randomInt } from 'node:crypto'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const TIME_CHARS = 8
const RANDOM_CHARS = 14

export type IdPrefix =
  | 'agt'
  | 'int'
  | 'acc'
  | 'prj'
  | 'key'
  | 'usr'
  | 'ses'
  | 'idn'
  | 'vrf'
  | 'lnk'
  | 'evt'
  | 'crd'
  | 'skl'
  | 'aud'
  | 'req'

/** A new id. `nowMs` is the wall clock in milliseconds since 1970. */
export function newId(prefix: IdPrefix, nowMs: number = Date.now()): string {
  return `${prefix}_${base62(nowMs, TIME_CHARS)}${randomBase62(RANDOM_CHARS)}`
}

/** Creation time of an id, in milliseconds since 1970. */
export function madeAt(id: string): number {
  const digits = id.slice(id.indexOf('_') + 1).slice(0, TIME_CHARS)
  return [...digits].reduce((value, digit) => value * 62 + ALPHABET.indexOf(digit), 0)
}

/**
 * The data directory that a process works in: the first part of its name, `place.process` (sandbox/data-directory.ts).
 */
export function placeOf(name: string): string {
  return name.split('.')[0]!
}

/** A lower bound: ids created at `ms` or later sort after it, and earlier ids sort before it. */
export function firstIdAt(prefix: IdPrefix, ms: number): string {
  return `${prefix}_${base62(ms, TIME_CHARS)}`
}

/** The lowest digits of a non-negative safe integer in base62, left-padded with `0` to `width`. */
export function base62(value: number, width: number): string {
  let text = ''
  let rest = value
  for (let i = 0; i < width; i++) {
    text = ALPHABET[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** Characters for each random number. `randomInt` is limited to 2 ** 48. */
const DRAWN_CHARS = 8

/** `count` uniformly random base62 characters from the system's generator. */
export function randomBase62(count: number): string {
  let text = ''
  while (text.length < count) {
    const width = Math.min(DRAWN_CHARS, count - text.length)
    text += base62(randomInt(62 ** width), width)
  }
  return text
}
