/** Input files that were fetched: from then on the stored spec has them as files, and their addresses are forgotten. */
import type { RunSpec } from '../domain/interaction.ts'
import type { Database, Statement } from './port.ts'

/** Goes with an append, whose fence it stands behind. */
export function fetchedFilesStatement(db: Database, interactionId: string, spec: RunSpec): Statement {
  return {
    query: db.query
      .updateTable('specs')
      .set({ spec: JSON.stringify(spec) })
      .where('interaction_id', '=', interactionId)
      .compile(),
    rows: 1,
  }
}
