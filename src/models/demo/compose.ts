/**
 * Text that the demo model can write by itself. It is no author: it has a few verses and says so, and for all else it
 * asks for the words.
 */

const HAIKU: readonly (readonly [string, string, string])[] = [
  ['Slow light on the hill', 'a small wind turns the first page', 'the day reads itself'],
  ['Rain counts on the roof', 'every drop a finished thought', 'the gutter agrees'],
  ['One lamp in the dark', 'the night leans in to listen', 'and forgets its cold'],
  ['Old path, new footprints', 'the stones remember each step', 'moss keeps the secret'],
]

/** A haiku under its subject; the same subject gets the same verses. */
export function haiku(subject: string): string {
  let sum = 0
  for (const letter of subject) sum += letter.codePointAt(0)!
  const verses = HAIKU[sum % HAIKU.length]!
  return `${subject ? `${subject[0]!.toUpperCase()}${subject.slice(1)}\n\n` : ''}${verses.join('\n')}\n`
}
