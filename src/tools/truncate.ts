/** Truncation of output to the size that a model may get. */
import { endOfCharacter, startOfCharacter } from '../domain/utf8.ts'

/**
 * Truncates to `maxBytes` bytes of UTF-8: keeps the beginning and the end, and replaces the middle by a marker. Never
 * splits a character.
 */
export function truncateMiddle(text: string, maxBytes: number): { readonly text: string; readonly cut: boolean } {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return { text, cut: false }
  const mark = `\n[… ${bytes.length - maxBytes} bytes left out …]\n`
  const room = Math.max(0, maxBytes - Buffer.byteLength(mark))
  const head = startOfCharacter(bytes, Math.ceil(room / 2))
  const tail = endOfCharacter(bytes, bytes.length - Math.floor(room / 2))
  return { text: bytes.toString('utf8', 0, head) + mark + bytes.toString('utf8', tail), cut: true }
}

/** Truncates to `maxBytes` bytes from the beginning. Never splits a character. */
export function truncateEnd(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8')
  return bytes.length <= maxBytes ? text : bytes.toString('utf8', 0, startOfCharacter(bytes, maxBytes))
}
