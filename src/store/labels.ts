/** Labels of agents and interactions, for the filters of their lists. */
import type { Database } from './port.ts'

/** Selects the ids of a project's agents or interactions that have a label with this value. */
export function labelled(db: Database, projectId: string, kind: 'agent' | 'interaction', key: string, value: string) {
  return db.query
    .selectFrom('labels')
    .select('labels.object_id')
    .where('labels.project_id', '=', projectId)
    .where('labels.kind', '=', kind)
    .where('labels.key', '=', key)
    .where('labels.value', '=', value)
}
