/**
 * The server's secret. Key hashes and signed addresses hang on it, each through a key derived for that purpose alone
 * (HKDF), so that none tells another.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** `configured`: ERRAND_SECRET; without it, one is made once in the data dir and kept there for its owner's eyes alone. */
export function loadSecret(dataDir: string, configured: string | undefined): string {
  if (configured !== undefined) return configured
  const file = join(dataDir, 'secret')
  try {
    // `wx`: of two starters at once, one makes it and the other reads it.
    writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const secret = readFileSync(file, 'utf8').trim()
  if (secret.length >= 32) return secret
  throw new Error(`${file} holds no secret. Remove it to have a new one made; API keys made before stop working then.`)
}
