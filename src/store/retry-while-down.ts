/** Retries while the database is down: restarted, failing over, or unreachable. */
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseUnavailable } from './port.ts'

const RETRY_MS = 250
/** Maximum time that a run waits for the database, in milliseconds. Shorter than a lease. */
export const MAX_OUTAGE_MS = 20_000

/**
 * Calls `ask` again for up to `forMs` milliseconds while it rejects with DatabaseUnavailable. Rejects with the last error
 * after that, or when `signal` aborts.
 */
export async function retryWhileDatabaseDown<T>(
  forMs: number,
  ask: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (const until = performance.now() + forMs; ; ) {
    try {
      return await ask()
    } catch (error) {
      const over = performance.now() > until || signal?.aborted
      if (over || !(error instanceof DatabaseUnavailable)) throw error
      await delay(RETRY_MS)
    }
  }
}
