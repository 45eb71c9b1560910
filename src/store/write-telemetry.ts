/** Wraps a database so that each write emits a telemetry event with its outcome and duration. */
import type { Emit } from '../telemetry/events.ts'
import type { Database } from './port.ts'

export function emitDatabaseWrites(db: Database, emit: Emit): Database {
  return {
    ...db,
    forProject: (projectId) => emitDatabaseWrites(db.forProject(projectId), emit),
    async write(write) {
      const startedAt = performance.now()
      const report = (outcome: 'done' | 'undone' | 'unavailable') =>
        emit({ type: 'database_written', outcome, ms: performance.now() - startedAt })
      try {
        const result = await db.write(write)
        report(result.ok ? 'done' : 'undone')
        return result
      } catch (error) {
        report('unavailable')
        throw error
      }
    },
  }
}
