/**
 * What a run leaves on a node that does not work on it any more: its sandboxes there, which nobody else can end.
 *
 * Sandboxes belong to a data directory. Processes on one SQLite share that, and so does a node with the one that it is
 * started again after: whoever goes on with the run finds them there, and they are left. Of Postgres' other nodes none does.
 */

import { placeOf } from '../../domain/ids.ts'
import { readHolder, releaseLease } from '../../store/leases.ts'
import type { EngineDependencies } from '../dependencies.ts'

export type CleanupDependencies = Pick<EngineDependencies, 'db' | 'hub' | 'sandboxes' | 'log'>

/**
 * Ends the sandboxes that an interaction has here, unless they may still be of use: it is not over, and nobody elsewhere
 * has it. Where it was ended from outside, whoever waits for that hears that nothing is left here. `owner`: this process.
 */
export async function endLeftover(deps: CleanupDependencies, owner: string, id: string): Promise<void> {
  const { db, hub, sandboxes, log } = deps
  const holder = await readHolder(db, id)
  const isHere = holder?.owner != null && placeOf(holder.owner) === placeOf(owner)
  if (holder?.status === 'running' && (isHere || !holder.held)) return
  log.info({ interactionId: id }, 'ending what is left here of a run')
  await sandboxes.destroy(id)
  if (!isHere) return
  await releaseLease(db, holder.owner!, id)
  hub.publish(id, [])
}

/** How often the holder is looked at without a hint, milliseconds. */
const LOOK_MS = 250

/**
 * Resolves when no node has anything left of an interaction that was ended from outside: its worker has let go of it, or
 * has been silent for a whole lease and so has stopped.
 */
export async function nothingLeft({ db, hub }: CleanupDependencies, id: string): Promise<void> {
  let hint = Promise.withResolvers<void>()
  const unsubscribe = hub.subscribe(id, () => hint.resolve())
  try {
    while ((await readHolder(db, id))?.held) {
      const timer = setTimeout(() => hint.resolve(), LOOK_MS)
      await hint.promise
      clearTimeout(timer)
      hint = Promise.withResolvers()
    }
  } finally {
    unsubscribe()
  }
}
