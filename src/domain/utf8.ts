/** Positions in bytes of UTF-8 at which text can be cut without splitting a character. */

/** The first position at or after `at` where a character begins. */
export function endOfCharacter(bytes: Buffer, at: number): number {
  let position = at
  while (position < bytes.length && isContinuation(bytes[position]!)) position++
  return position
}

/** The last position at or before `at` where a character begins (the end counts as one). */
export function startOfCharacter(bytes: Buffer, at: number): number {
  let position = at
  while (position > 0 && position < bytes.length && isContinuation(bytes[position]!)) position--
  return position
}

/** A continuation byte of UTF-8. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}
