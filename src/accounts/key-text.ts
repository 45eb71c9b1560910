/**
 * The text of an API key: `errand_sk_` (a fixed prefix, so that secret scanners know it), 32 random base62 characters
 * (190 bits), and 6 checksum characters, so that a typo is refused without a database read.
 */

import { createHmac, type KeyObject } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { base62, randomBase62 } from '../domain/ids.ts'

const PREFIX = 'errand_sk_'
const RANDOM_CHARS = 32
const CHECKSUM_CHARS = 6
const SHAPE = /^errand_sk_[0-9A-Za-z]{38}$/

export function newKeyText(): string {
  const body = PREFIX + randomBase62(RANDOM_CHARS)
  return body + checksum(body)
}

/** Whether the text has the form and checksum of a key. */
export function isKeyText(text: string): boolean {
  return SHAPE.test(text) && checksum(text.slice(0, -CHECKSUM_CHARS)) === text.slice(-CHECKSUM_CHARS)
}

/** Keyed hash of a key, which is what is stored: a stolen database can't be searched for guessed keys. */
export function hashKey(secret: KeyObject, text: string): string {
  return createHmac('sha256', secret).update(text).digest('hex')
}

/** The part of a key that stays visible after it was created. */
export function visiblePrefix(text: string): string {
  return text.slice(0, PREFIX.length + 4)
}

function checksum(text: string): string {
  return base62(crc32(text), CHECKSUM_CHARS)
}
