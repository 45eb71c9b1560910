/**
 * What a run leaves on a node that does not work on it any more: its sandboxes there, which nobody else can end.
 *
 * Nodes on one Postgres have each their own sandboxes. Processes on one SQLite share a data directory and its sandbox host, so
 * whoever goes on with a run finds them, and they are left where it is not over.
 */
import { type Holder, letGo, readHolder } from '../store/claims.ts'
import type { EngineParts } from './parts.ts'

export type LeftoverParts = Pick<EngineParts, 'db' | 'hub' | 'sandboxes' | 'log'>

/**
 * Ends this node's sandboxes of an interaction, unless they may still be of use here: it is not over, and no other node has
 * it. Where it was ended from outside, whoever waits for that hears that nothing is left here.
 */
export async function endLeftover(parts: LeftoverParts, owner: string, id: string): Promise<void> {
  const { db, hub, sandboxes, log } = parts
  const holder = await readHolder(db, id)
  if (holder?.status === 'running' && !(db.dialect === 'postgres' && isAnothers(holder, owner))) return
  log.info({ interactionId: id }, 'ending what is left here of a run')
  await sandboxes.destroy(id)
  if (holder?.owner !== owner) return
  await letGo(db, owner, id)
  hub.publish(id, [])
}

function isAnothers({ held, owner: by }: Holder, owner: string): boolean {
  return held && by !== owner
}

/** How often the holder is looked at without a hint, milliseconds. */
const LOOK_MS = 250

/**
 * Resolves when no node has anything left of an interaction that was ended from outside: its worker has let go of it, or
 * has been silent for a whole lease and so has stopped.
 */
export async function nothingLeft({ db, hub }: LeftoverParts, id: string): Promise<void> {
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
