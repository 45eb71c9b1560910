/** A database whose writes are told as moments. */
import type { Observe } from '../telemetry/moments.ts'
import type { Database } from './port.ts'

export function observeWrites(db: Database, observe: Observe): Database {
  return {
    ...db,
    forProject: (projectId) => observeWrites(db.forProject(projectId), observe),
    async write(write) {
      const startedAt = performance.now()
      const tell = (outcome: 'done' | 'undone' | 'unavailable') =>
        observe({ type: 'database_written', outcome, ms: performance.now() - startedAt })
      try {
        const result = await db.write(write)
        tell(result.ok ? 'done' : 'undone')
        return result
      } catch (error) {
        tell('unavailable')
        throw error
      }
    },
  }
}
