/** Everything that is asked of the pages themselves: calls into their documents, and snapshots. */
import type { Cdp } from './cdp.ts'
import { createDocuments, type Documents } from './documents.ts'
import { createSnapshots, type Snapshots } from './snapshot.ts'

export interface Page extends Documents, Snapshots {}

export function createPage(cdp: Cdp): Page {
  const documents = createDocuments(cdp)
  return { ...documents, ...createSnapshots(documents) }
}
