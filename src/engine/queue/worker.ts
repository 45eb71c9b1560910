/**
 * Works on interactions: claims queued ones while it has free slots, renews the leases of its runs, and stops lost runs.
 *
 *   idle ──wake, poll──▶ claiming ──claim──▶ running (a slot each) ──end──▶ idle
 *   running ──waits for a person──▶ parked (its lease and its sandboxes, no slot) ──decision, a free slot──▶ running
 *   any ──close──▶ draining: no new claims; parked runs, and runs that outlast the grace period, are requeued
 *
 * A run is lost when its epoch was raised (it was cancelled, or another worker has it), found by a hint or a poll. It also
 * counts as lost when the database was unreachable for a whole lease, since another worker may have claimed it.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { RunSpec } from '../../domain/interaction.ts'
import type { Claim, Claimant } from '../../store/claim-row.ts'
import { claimOldest, MAX_ATTEMPTS } from '../../store/claims.ts'
import { findInteraction } from '../../store/interactions.ts'
import { readEpochs, renewLeases } from '../../store/leases.ts'
import { anyQueued, requeue, resetAttemptsStatement } from '../../store/queue.ts'
import { retryWhileDatabaseDown } from '../../store/retry-while-down.ts'
import type { LeavingCause } from '../../telemetry/events.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { WORK } from '../hub.ts'
import type { WorkerSlot } from '../run/run.ts'
import { Stop } from '../run/stop.ts'
import { endLeftover } from './cleanup.ts'
import { type Execution, startRun } from './execute.ts'
import { createSlots, type Slot } from './slots.ts'

/** Minimum timeout of a lease renewal. A process that was frozen may find its leases expired but still its own. */
const LAST_MOMENT_MS = 500

export interface WorkerOptions {
  readonly deps: EngineDependencies
  /** Identifies this process among all on the database. Begins with its data directory (sandbox/data-directory.ts). */
  readonly owner: string
  readonly slots: number
  readonly leaseMs: number
  /** Poll interval for the queue and the epochs, in milliseconds. */
  readonly pollMs: number
  /** False: works only on runs passed to `start`. */
  readonly claims: boolean
}

export interface Worker {
  /** Reserves a slot for a new interaction, so that its insert can claim it. Undefined if no slot is free. */
  reserve(): { readonly claimant: Claimant; start(claim: Claim, spec: RunSpec): void; release(): void } | undefined
  /** Call when an interaction may be queued. */
  wake(): void
  get(interactionId: string): Execution | undefined
  /** Number of running interactions, without those that wait for a person. */
  readonly running: number
  /** Stops claiming, waits up to `graceMs` for running interactions, requeues the rest. */
  close(graceMs: number): Promise<void>
}

export function openWorker({ deps, owner, slots, leaseMs, pollMs, claims }: WorkerOptions): Worker {
  const runs = new Map<string, { readonly run: Execution; readonly slot: Slot }>()
  const claimant: Claimant = { owner, leaseMs, runningPerProject: deps.limits.runningPerProject }
  const capacity = createSlots(slots)
  /** The one run on its last attempt, which may have killed its earlier workers. */
  let suspect: Execution | undefined
  let closing = false
  let claiming = false
  let wokenMeanwhile = false
  /** False once a claim found an empty queue and no hint has come since. */
  let someWaits = true
  let looking = false
  let hintedMeanwhile = false
  let renewing = false
  /** Start time of the last successful renewal. */
  let renewedAt = performance.now()

  const unsubscribe = deps.hub.subscribe(WORK, wake)
  const poll = setInterval(() => {
    void look()
    wake()
  }, pollMs)
  const heartbeat = setInterval(() => void renew(), leaseMs / 3)

  function start(claim: Claim, spec: RunSpec, slot: Slot): void {
    // The poll already claimed it while `submit` waited for the insert.
    if (runs.get(claim.id)?.run.epoch === claim.epoch) {
      slot.release()
      return
    }
    if (closing) {
      slot.release()
      void releaseRun(claim, 'shutdown').catch((error) => {
        deps.log.warn(
          { err: error, interactionId: claim.id },
          'a run could not be released; another worker takes it when its lease expires',
        )
      })
      return
    }
    const runSlot: WorkerSlot = {
      release() {
        slot.release()
        if (closing) run.stop(new Stop('shutdown'))
        else wake()
      },
      reacquire: slot.reacquire,
    }
    const run = startRun(deps, claim, spec, runSlot, leave)
    runs.set(claim.id, { run, slot })
    const unsubscribe = deps.hub.subscribe(claim.id, (events) => {
      if (events.length === 0) void look()
    })
    if (claim.attempts === MAX_ATTEMPTS) watchSuspect(run, claim)
    void run.finished.then(() => {
      unsubscribe()
      if (runs.get(claim.id)?.run === run) runs.delete(claim.id)
      slot.release()
      if (someWaits) wake()
    })
  }

  async function leave(claim: Claim, cause: LeavingCause): Promise<void> {
    if (cause === 'ended') return
    if (cause === 'shutdown' || cause === 'lost') await releaseRun(claim, cause)
    await endLeftover(deps, owner, claim.id)
  }

  /** Requeues the run. A lost run may only be late; the cause may recur, so its attempt counts. */
  async function releaseRun(claim: Claim, cause: 'shutdown' | 'lost'): Promise<void> {
    await requeue(deps.db, claim, owner, { planned: cause === 'shutdown' })
    deps.hub.publish(WORK, [])
  }

  /**
   * A run that kills its worker also interrupts the worker's other runs. So runs on their last attempt are worked on one at a
   * time. After a whole lease without a crash, the run's attempts are reset.
   */
  function watchSuspect(run: Execution, claim: Claim): void {
    suspect = run
    const clear = () => {
      clearTimeout(timer)
      if (suspect === run) suspect = undefined
      wake()
    }
    const timer = setTimeout(() => {
      deps.db.write([resetAttemptsStatement(deps.db, claim)]).then(clear, clear)
    }, leaseMs)
    void run.finished.then(clear)
  }

  function wake(): void {
    if (!claims || closing) return
    someWaits = true
    if (claiming) wokenMeanwhile = true
    else void claimWaiting()
  }

  /** False if no slot is free or nothing is queued. Skips own runs with expired leases: the heartbeat renews them. */
  async function claimOne(): Promise<boolean> {
    const slot = closing ? undefined : capacity.take()
    if (!slot) return false
    try {
      const claim = await claimOldest(deps.db, {
        ...claimant,
        except: [...runs.keys()],
        noSuspects: suspect !== undefined,
      })
      const interaction = claim && (await retryWhileDatabaseDown(leaseMs / 2, () => findInteraction(deps.db, claim.id)))
      if (claim && interaction) start(claim, interaction.spec, slot)
      else slot.release()
      // Interactions over their project's limit wait for another run of the project to end.
      if (!claim) someWaits = await anyQueued(deps.db)
      return claim !== undefined
    } catch (error) {
      slot.release()
      throw error
    }
  }

  async function claimWaiting(): Promise<void> {
    claiming = true
    try {
      do {
        wokenMeanwhile = false
        while (await claimOne());
      } while (wokenMeanwhile)
    } catch (error) {
      deps.log.error({ err: error }, 'could not claim work')
    } finally {
      claiming = false
    }
  }

  /** Renews the leases. If that fails for a whole lease, other workers may have the runs, so they stop here. */
  async function renew(): Promise<void> {
    if (renewing) return
    renewing = true
    const askedAt = performance.now()
    const before = [...runs.values()].map(({ run }) => run)
    try {
      if (before.length > 0) await inTime(renewLeases(deps.db, owner, leaseMs, [...runs.keys()]))
      renewedAt = askedAt
    } catch (error) {
      deps.log.error({ err: error }, 'could not renew leases')
      if (performance.now() - renewedAt > leaseMs) for (const run of before) run.stop(new Stop('lost'))
    } finally {
      renewing = false
    }
  }

  /** Rejects if the renewal takes longer than the current lease lasts (but at least LAST_MOMENT_MS). */
  function inTime<T>(renewal: Promise<T>): Promise<T> {
    const left = Math.max(LAST_MOMENT_MS, renewedAt + leaseMs + 1 - performance.now())
    const late = delay(left, undefined, { ref: false }).then(() => {
      throw new Error('the database does not answer')
    })
    return Promise.race([renewal, late])
  }

  /** Stops runs that another worker claimed or a caller cancelled. */
  async function look(): Promise<void> {
    if (looking) hintedMeanwhile = true
    if (looking || runs.size === 0) return
    looking = true
    do {
      hintedMeanwhile = false
      const before = [...runs.values()].map(({ run }) => run)
      // If the database is unavailable, the next poll tries again; the leases bound the outage.
      const epochs = await readEpochs(deps.db, [...runs.keys()]).catch(() => undefined)
      for (const run of before) if ((epochs?.get(run.id) ?? run.epoch) !== run.epoch) run.stop(new Stop('lost'))
    } while (hintedMeanwhile)
    looking = false
  }

  return {
    reserve() {
      const slot = closing ? undefined : capacity.take()
      if (!slot) return undefined
      let started = false
      return {
        claimant,
        start(claim, spec) {
          started = true
          start(claim, spec, slot)
        },
        release() {
          if (!started) slot.release()
        },
      }
    },
    wake,
    get: (id) => runs.get(id)?.run,
    get running() {
      return [...runs.values()].filter(({ slot }) => slot.isHeld()).length
    },
    async close(graceMs) {
      closing = true
      unsubscribe()
      // A person's decision may take arbitrarily long.
      for (const { run, slot } of runs.values()) if (!slot.isHeld()) run.stop(new Stop('shutdown'))
      const all = () => Promise.all([...runs.values()].map(({ run }) => run.finished))
      await Promise.race([all(), new Promise((resolve) => setTimeout(resolve, graceMs).unref())])
      for (const { run } of runs.values()) run.stop(new Stop('shutdown'))
      await all()
      clearInterval(poll)
      clearInterval(heartbeat)
    },
  }
}
