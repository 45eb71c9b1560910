/**
 * Identifiers: a prefix that says what it names, then 22 base62 characters.
 * The first 8 are the creation time in milliseconds, so that ids sort by age and land side by side in an index;
 * the other 14 are random (83 bits), so that an id can't be guessed.
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

/** When an id of ours was made, milliseconds since 1970. */
export function madeAt(id: string): number {
  const digits = id.slice(id.indexOf('_') + 1).slice(0, TIME_CHARS)
  return [...digits].reduce((value, digit) => value * 62 + ALPHABET.indexOf(digit), 0)
}

/** Of a process by its name, `place.process`: the data directory that it works in (sandbox/data-directory.ts). */
export function placeOf(name: string): string {
  return name.split('.')[0]!
}

/** What all ids made at that time or later come behind, and all made before it come before. */
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

/** So many characters are one number of the generator, which takes less than 2 ** 48 and draws its bytes many at a time. */
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
