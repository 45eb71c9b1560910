/**
 * Destroys the sandboxes of a run that this node no longer works on. No other node can destroy them.
 *
 * Sandboxes belong to a data directory. Processes on one SQLite database share it, and so does a restarted node with its
 * predecessor: the next worker finds the sandboxes there, so they are kept. Other nodes on Postgres can't use them.
 */

import { placeOf } from '../../domain/ids.ts'
import { readHolder, releaseLease } from '../../store/leases.ts'
import type { EngineDependencies } from '../dependencies.ts'

export type CleanupDependencies = Pick<EngineDependencies, 'db' | 'hub' | 'sandboxes' | 'log'>

/**
 * Destroys an interaction's sandboxes on this node, unless a worker may still need them: the interaction runs, and no other
 * node has claimed it. If it was cancelled, notifies the waiting caller. `owner`: this process.
 */
export async function endLeftover(deps: CleanupDependencies, owner: string, id: string): Promise<void> {
  const { db, hub, sandboxes, log } = deps
  const holder = await readHolder(db, id)
  const isHere = holder?.owner != null && placeOf(holder.owner) === placeOf(owner)
  if (holder?.status === 'running' && (isHere || !holder.held)) return
  log.info({ interactionId: id }, 'destroying sandboxes of a run that this node no longer works on')
  await sandboxes.destroy(id)
  if (!isHere) return
  await releaseLease(db, holder.owner!, id)
  hub.publish(id, [])
}

/** Poll interval in milliseconds. */
const LOOK_MS = 250

/**
 * Resolves when no node has sandboxes of a cancelled interaction: its worker has released the lease, or the lease has expired
 * and so the worker has stopped.
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
