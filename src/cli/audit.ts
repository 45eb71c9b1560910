/** `errand audit`: what is on record of interactions that are gone, on the data directory of this machine. */
import { type ConfigOption, withAdmin } from './start.ts'
import type { Surroundings } from './surroundings.ts'
import { table, when } from './table.ts'

export interface RemovedOptions extends ConfigOption {
  readonly limit: number
  readonly json: boolean
}

const HEAD = ['REMOVED (UTC)', 'INTERACTION', 'PROJECT', 'BY', 'CREATED', 'EVENTS', 'FILES', 'BYTES']

export async function listRemoved(around: Surroundings, options: RemovedOptions): Promise<void> {
  const removals = await withAdmin(around, options, (admin) => admin.removals(options.limit))
  if (options.json) {
    around.out.write(`${JSON.stringify(removals, null, 2)}\n`)
    return
  }
  const rows = removals.map((removal) => [
    when(removal.at),
    removal.interactionId,
    removal.projectId,
    removal.removedBy,
    when(removal.createdAt),
    ...[removal.events, removal.files, removal.fileBytes].map(String),
  ])
  around.out.write(table(HEAD, rows))
}
