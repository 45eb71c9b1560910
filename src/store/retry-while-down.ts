/** Waiting for a database that is away: restarted, failed over, cut off. */
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseUnavailable } from './port.ts'

const RETRY_MS = 250
/** So long a run waits where it can't go on without the database. Shorter than a lease. */
export const MAX_OUTAGE_MS = 20_000

/** Asks again for up to `forMs` while the database is away; then, or once `signal` aborts, rejects as it did last. */
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
