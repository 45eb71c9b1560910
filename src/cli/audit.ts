/** `errand audit`: records of removed interactions, read from the data directory of this machine. */

import type { CliContext } from './context.ts'
import { type ConfigOption, withAdmin } from './start.ts'
import { table, when } from './table.ts'

export interface RemovedOptions extends ConfigOption {
  readonly limit: number
  readonly json: boolean
}

const HEAD = ['REMOVED (UTC)', 'INTERACTION', 'PROJECT', 'BY', 'CREATED', 'EVENTS', 'FILES', 'BYTES']

export async function listRemoved(context: CliContext, options: RemovedOptions): Promise<void> {
  const removals = await withAdmin(context, options, (admin) => admin.removals(options.limit))
  if (options.json) {
    context.out.write(`${JSON.stringify(removals, null, 2)}\n`)
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
  context.out.write(table(HEAD, rows))
}
