/** Replaces the URLs of input files in the stored spec once the files are fetched. The URLs are not kept. */
import type { RunSpec } from '../domain/interaction.ts'
import type { Database, Statement } from './port.ts'

/** Must be part of an append's write: it has no fence of its own. */
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
