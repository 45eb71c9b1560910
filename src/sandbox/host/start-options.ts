/** The interface between the server and the host that it starts. */
import { join } from 'node:path'
import type { HostDirectory } from '../driver.ts'
import type { DriverChoice } from '../drivers.ts'
import type { HostSettings } from '../protocol.ts'

/** The host's argument, as JSON. */
export interface HostOptions extends DriverChoice, HostDirectory {
  readonly socketPath: string
  /** The lock (process-lock.ts) that makes a process the host of this data directory. */
  readonly lock: string
  readonly logFile: string
  readonly fingerprint: string
  readonly settings: HostSettings
}

/** Result of the start: one line of JSON on the host's file descriptor 3. `taken`: another host holds the lock. */
export type StartReport = { outcome: 'ready' } | { outcome: 'taken' } | { outcome: 'failed'; message: string }

/** The file with the host's process id. */
export function pidFile(stateDir: string): string {
  return join(stateDir, 'host.pid')
}
