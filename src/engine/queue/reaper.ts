/**
 * Looks now and then for what nobody looks after: interactions that wait too long, or whose process died, sandboxes without
 * a run, what runs used that is to be added together, and what is past its time.
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
/** Younger files may belong to a request that is being stored right now. */
const ORPHAN_MS = 3_600_000

export interface ReaperOptions {
  readonly deps: EngineDependencies
  /** Names this process among all that work on the database. */
  readonly owner: string
  /** Whether what one process of all is enough for is this one's. */
  readonly leads: () => boolean
  readonly remove: (projectId: string, interactionId: string, by: string) => Promise<void>
}

export interface Reaper {
  /** To be called when the worker has stopped: what no run needs any more does not stay behind. */
  close(): Promise<void>
}

export function openReaper({ deps, owner, leads, remove }: ReaperOptions): Reaper {
  let closed = false
  let busy: Promise<void> = Promise.resolve()
  // The queue is looked at often where waiting is bounded shortly.
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

  /** Of processes that were killed here: what they worked on need not wait until their leases run out. */
  async function endDeadLeases(): Promise<void> {
    for (const holder of await readOwnersInSameDirectory(deps.db, owner)) {
      if (await deps.lives(holder)) continue
      deps.log.info({ process: holder }, 'a process here has died: its runs are taken up')
      await expireLeases(deps.db, holder)
      deps.hub.publish(WORK, [])
    }
  }

  /** Of runs that ended, or went on elsewhere, while nobody here could see to it. */
  async function sweepSandboxes(): Promise<void> {
    for (const id of await deps.sandboxes.living()) await endLeftover(deps, owner, id)
  }

  async function addUsage(): Promise<void> {
    if (!leads()) return
    while (!closed && (await sumEndedUsage(deps.db, USAGE_BATCH)) === USAGE_BATCH);
  }

  /** Files of a request that was never stored, or of an interaction that was removed while the server died. */
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
          (error) => deps.log.debug({ err: error, interactionId: id }, 'was removed already'),
        )
      }
      if (removed > 0) deps.log.info({ removed }, 'removed interactions that are past their retention')
      // Where none could be, others are at it, or it is tried again later.
      if (expired.length < BATCH || removed === 0 || closed) break
    }
    await deleteIdempotencyKeys(deps.db, deps.now() - DAY_MS)
    await deleteRemovals(deps.db, deps.now() - deps.limits.auditRetentionDays * DAY_MS)
    // Also of what callers removed since the last time. In steps, between which others write.
    while (!closed && (await deps.db.reclaim?.()));
  }

  return {
    async close() {
      closed = true
      for (const timer of timers) clearInterval(timer)
      await busy
      await sweepSandboxes().catch((error) => deps.log.error({ err: error }, 'sandboxes may stay for a while'))
    },
  }
}
