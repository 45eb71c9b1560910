/** Fingerprints of request bodies, for `Idempotency-Key`. */
import { createHash, type Hash } from 'node:crypto'
import { setImmediate as yieldToOthers } from 'node:timers/promises'

/** Number of characters that are hashed in one turn of the event loop. */
const SLICE_CHARACTERS = 1024 * 1024

/**
 * SHA-256 of the body, independent of the order of fields. `stream` and `background` are left out: a caller whose stream broke
 * can repeat the request in the background and join the same run. Yields to the event loop.
 */
export async function fingerprintOf(body: unknown): Promise<string> {
  const { stream: _stream, background: _background, ...rest } = body as Record<string, unknown>
  const hash = createHash('sha256')
  await addValue(hash, rest)
  return hash.digest('hex')
}

/** Hashes each text after its length, so that no two values give the same sequence. */
async function addValue(hash: Hash, value: unknown): Promise<void> {
  if (typeof value === 'string') return addText(hash, value)
  if (Array.isArray(value)) {
    hash.update(`[${value.length}:`)
    for (const entry of value) await addValue(hash, entry)
  } else if (typeof value === 'object' && value !== null) {
    const names = Object.keys(value).sort()
    hash.update(`{${names.length}:`)
    for (const name of names) {
      await addText(hash, name)
      await addValue(hash, (value as Record<string, unknown>)[name])
    }
  } else hash.update(`${value};`)
}

async function addText(hash: Hash, text: string): Promise<void> {
  hash.update(`"${text.length}:`)
  for (let at = 0; at < text.length; at += SLICE_CHARACTERS) {
    if (at > 0) await yieldToOthers()
    hash.update(text.slice(at, at + SLICE_CHARACTERS))
  }
}
