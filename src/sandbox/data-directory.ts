/**
 * Identifies a data directory among those of all nodes. A process is named `<id>.<process>`: a new process on the directory
 * knows from the id which runs its dead predecessors left.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBase62 } from '../domain/ids.ts'
import { isLockHeld, takeLock } from './process-lock.ts'

/** Creates the id on first use; it is kept in the data directory. */
export function loadDataDirectoryId(dataDir: string): string {
  const file = join(dataDir, 'place')
  try {
    // `wx`: if two processes start at once, one writes the id and the other reads it.
    writeFileSync(file, randomBase62(16), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return readFileSync(file, 'utf8')
}

/** Shows that the process of that name is alive, until `close` or its end. */
export async function announceProcess(name: string): Promise<{ close(): Promise<void> }> {
  const lock = await takeLock(lockOf(name))
  lock.unref()
  return { close: lock.release }
}

/** Whether the process of that name on this machine is alive. A stopped process is. */
export function isProcessAlive(name: string): Promise<boolean> {
  return isLockHeld(lockOf(name))
}

function lockOf(name: string): string {
  return `errand-process-${name}`
}
