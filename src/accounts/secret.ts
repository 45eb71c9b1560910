/**
 * The server's secret. Key hashes, signed URLs and sealed secrets depend on it. Each purpose has its own derived key (HKDF), so
 * that one does not reveal another.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** `configured`: ERRAND_SECRET. Without it, a secret is generated once and stored in the data directory, readable only by its owner. */
export function loadSecret(dataDir: string, configured: string | undefined): string {
  if (configured !== undefined) return configured
  const file = join(dataDir, 'secret')
  try {
    // `wx`: if two processes start at once, one creates the file and the other reads it.
    writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const secret = readFileSync(file, 'utf8').trim()
  if (secret.length >= 32) return secret
  throw new Error(
    `${file} contains no secret. Remove the file to generate a new one; existing API keys then stop working.`,
  )
}
