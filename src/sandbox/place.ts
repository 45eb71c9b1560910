/**
 * Names a data directory, and with it its sandbox host, among those of all nodes. A process is named `place.process`; of one
 * that serves on Postgres, all others of its place are dead.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBase62 } from '../domain/ids.ts'

/** Made once, and kept in the data directory. */
export function loadPlace(dataDir: string): string {
  const file = join(dataDir, 'place')
  try {
    // `wx`: of two starters at once, one makes it and the other reads it.
    writeFileSync(file, randomBase62(16), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return readFileSync(file, 'utf8')
}
