/**
 * Periodic maintenance: fails interactions that wait too long, expires leases of dead processes, destroys orphaned sandboxes,
 * aggregates usage, and removes expired data and orphaned files.
 */
import { toRunError } from '../../domain/errors.ts'
import { madeAt } from '../../domain/ids.ts'
import { deleteIdempotencyKeys } from '../../store/idempotency.ts'
import { findExpired, knownInteractions } from '../../store/interactions.ts'
import { expireLeases, readOwnersInSameDirectory } from '../../store/leases.ts'
import { findStarved } from '../../store/queue.ts'
import { deleteRemovals } from '../../store/removals.ts'
import { sumEndedUsage } from '../../store/usage.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { WORK } from '../hub.ts'
import { createMeter } from '../run/meter.ts'
import { endLeftover } from './cleanup.ts'
import { endOutside } from './ending.ts'

const SWEEP_MS = 10_000
const USAGE_MS = 30_000
const RETENTION_MS = 600_000
const ORPHANS_MS = 3_600_000
const DAY_MS = 86_400_000
const BATCH = 100
const USAGE_BATCH = 500
/** Minimum age of orphaned files. Younger ones may belong to a request that is being stored. */
const ORPHAN_MS = 3_600_000

export interface ReaperOptions {
  readonly deps: EngineDependencies
  /** Identifies this process among all on the database. */
  readonly owner: string
  /** True if this process does the maintenance that one process per database must do. */
  readonly leads: () => boolean
  readonly remove: (projectId: string, interactionId: string, by: string) => Promise<void>
}

export interface Reaper {
  /** Call after the worker has stopped: destroys the sandboxes that no run needs. */
  close(): Promise<void>
}

export function openReaper({ deps, owner, leads, remove }: ReaperOptions): Reaper {
  let closed = false
  let busy: Promise<void> = Promise.resolve()
  // A short queue timeout needs frequent checks.
  const queueMs = Math.min(SWEEP_MS, Math.max(100, (deps.limits.queueWaitS * 1_000) / 4))
  const timers = [
    setInterval(() => enqueue(failStarved), queueMs),
    setInterval(() => enqueue(endDeadLeases), SWEEP_MS),
    setInterval(() => enqueue(sweepSandboxes), SWEEP_MS),
    setInterval(() => enqueue(addUsage), USAGE_MS),
    setInterval(() => enqueue(removeExpired), RETENTION_MS),
    setInterval(() => enqueue(removeOrphanFiles), ORPHANS_MS),
  ]
  enqueue(endDeadLeases)
  enqueue(sweepSandboxes)
  enqueue(removeExpired)
  enqueue(removeOrphanFiles)

  function enqueue(task: () => Promise<void>): void {
    busy = busy.then(async () => {
      if (closed) return
      await task().catch((error) => deps.log.error({ err: error }, `${task.name} failed`))
    })
  }

  async function failStarved(): Promise<void> {
    const { queueWaitS } = deps.limits
    for (const { id, epoch, createdAt, countedFor } of await findStarved(deps.db, queueWaitS * 1_000)) {
      const meter = createMeter({
        model: '',
        priceOf: () => undefined,
        createdAt,
        now: deps.now,
        turns: [],
        toolCalls: 0,
      })
      const error = toRunError('unavailable', `No worker was free within ${queueWaitS} s. Try again later.`)
      await endOutside(deps, id, { status: 'failed', error, usage: meter.usage(), countedFor }, epoch)
    }
  }

  /** Expires the leases of dead processes of this data directory, so that their runs resume at once. */
  async function endDeadLeases(): Promise<void> {
    for (const holder of await readOwnersInSameDirectory(deps.db, owner)) {
      if (await deps.lives(holder)) continue
      deps.log.info({ process: holder }, 'a process of this data directory has died; its runs resume')
      await expireLeases(deps.db, holder)
      deps.hub.publish(WORK, [])
    }
  }

  /** Destroys sandboxes of runs that ended or moved to another node while this one could not react. */
  async function sweepSandboxes(): Promise<void> {
    for (const id of await deps.sandboxes.living()) await endLeftover(deps, owner, id)
  }

  async function addUsage(): Promise<void> {
    if (!leads()) return
    while (!closed && (await sumEndedUsage(deps.db, USAGE_BATCH)) === USAGE_BATCH);
  }

  /** Removes files of requests that were never stored, and of interactions whose removal was interrupted. */
  async function removeOrphanFiles(): Promise<void> {
    if (!leads()) return
    const before = deps.now() - ORPHAN_MS
    let batch: string[] = []
    async function removeUnknown(): Promise<void> {
      const known = await knownInteractions(deps.db, batch)
      for (const id of batch) if (!known.has(id)) await deps.blobs.removeAll(id)
      batch = []
    }
    for await (const owner of deps.blobs.owners()) {
      if (owner.startsWith('int_') && madeAt(owner) < before) batch.push(owner)
      if (batch.length === BATCH) await removeUnknown()
      if (closed) return
    }
    await removeUnknown()
  }

  async function removeExpired(): Promise<void> {
    if (!leads()) return
    for (;;) {
      const expired = await findExpired(deps.db, deps.limits.retentionDays * DAY_MS, BATCH)
      let removed = 0
      for (const { projectId, id } of expired) {
        await remove(projectId, id, 'retention').then(
          () => removed++,
          (error) => deps.log.debug({ err: error, interactionId: id }, 'an expired interaction was already removed'),
        )
      }
      if (removed > 0) deps.log.info({ removed }, 'removed interactions that are past their retention')
      // If none could be removed, another node is removing them, or a later sweep tries again.
      if (expired.length < BATCH || removed === 0 || closed) break
    }
    await deleteIdempotencyKeys(deps.db, deps.now() - DAY_MS)
    await deleteRemovals(deps.db, deps.now() - deps.limits.auditRetentionDays * DAY_MS)
    // Also reclaims the space of what callers removed. In steps, so that other writes get through.
    while (!closed && (await deps.db.reclaim?.()));
  }

  return {
    async close() {
      closed = true
      for (const timer of timers) clearInterval(timer)
      await busy
      await sweepSandboxes().catch((error) =>
        deps.log.error({ err: error }, 'could not destroy orphaned sandboxes; a later sweep tries again'),
      )
    },
  }
}
