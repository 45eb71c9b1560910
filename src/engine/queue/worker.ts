/**
 * Works on interactions: claims what waits while it has slots, keeps the leases of what it has, and stops what it lost.
 *
 *   idle ──wake, poll──▶ claiming ──claim──▶ running (a slot each) ──end──▶ idle
 *   running ──waits for a person──▶ parked (its lease and its sandboxes, no slot) ──decision, a free slot──▶ running
 *   any ──close──▶ draining: no new claims; what is parked, or still runs after the grace, is handed over
 *
 * A run is lost when its epoch was raised (it was cancelled, or another worker has it), which shows on a hint or by looking;
 * and when the database could not be asked for a whole lease, since then it may have been.
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

/** For the database to answer where the lease is over already: a process that was frozen may find all as it was. */
const LAST_MOMENT_MS = 500

export interface WorkerOptions {
  readonly deps: EngineDependencies
  /** Names this process among all that work on the database, as `place.process`: see sandbox/data-directory.ts. */
  readonly owner: string
  readonly slots: number
  readonly leaseMs: number
  /** How often the queue and the epochs are looked at without a hint, milliseconds. */
  readonly pollMs: number
  /** False: only what is handed to `start` is worked on. */
  readonly claims: boolean
}

export interface Worker {
  /** What `insertInteraction` needs to claim at once; undefined where no slot is free. Holds the slot until `start` or `release`. */
  reserve(): { readonly claimant: Claimant; start(claim: Claim, spec: RunSpec): void; release(): void } | undefined
  /** Something may be waiting. */
  wake(): void
  get(interactionId: string): Execution | undefined
  /** Those that wait for a person are none. */
  readonly running: number
  /** Stops claiming, waits up to `graceMs` for what runs, hands over the rest. */
  close(graceMs: number): Promise<void>
}

export function openWorker({ deps, owner, slots, leaseMs, pollMs, claims }: WorkerOptions): Worker {
  const runs = new Map<string, { readonly run: Execution; readonly slot: Slot }>()
  const claimant: Claimant = { owner, leaseMs, runningPerProject: deps.limits.runningPerProject }
  const capacity = createSlots(slots)
  /** It has one attempt left: perhaps it is what ended its workers. There is no other such beside it. */
  let suspect: Execution | undefined
  let closing = false
  let claiming = false
  let wokenMeanwhile = false
  /** Something was heard of, or seen, that waits, and since then it was not found that nothing does. */
  let someWaits = true
  let looking = false
  let hintedMeanwhile = false
  let renewing = false
  /** When the database was asked for the leases that it gave last. */
  let renewedAt = performance.now()

  const unsubscribe = deps.hub.subscribe(WORK, wake)
  const poll = setInterval(() => {
    void look()
    wake()
  }, pollMs)
  const heartbeat = setInterval(() => void renew(), leaseMs / 3)

  function start(claim: Claim, spec: RunSpec, slot: Slot): void {
    // Found waiting while its submission waited to hear whether it was stored.
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

  /** Lost may only mean late, and nobody else has the run. What made it late may come again, so that attempt counts. */
  async function releaseRun(claim: Claim, cause: 'shutdown' | 'lost'): Promise<void> {
    await requeue(deps.db, claim, owner, { planned: cause === 'shutdown' })
    deps.hub.publish(WORK, [])
  }

  /**
   * A run that kills its workers takes its neighbours along, each time. So those with one attempt left go on one after
   * another, and one that has lived for a whole lease is acquitted: the next crash will not have been its own.
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

  /** False where no slot is free or nothing waits. A lease of our own that ran out is for the heartbeat to prolong. */
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
      // What finds no room in its project waits for a run of that to end.
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

  /** Prolongs the leases. Where that fails for a whole lease, others may have the work: stop it here. */
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

  /** A database that hangs gives no lease: it has as long as the last one lasts, and a moment where that is over. */
  function inTime<T>(renewal: Promise<T>): Promise<T> {
    const left = Math.max(LAST_MOMENT_MS, renewedAt + leaseMs + 1 - performance.now())
    const late = delay(left, undefined, { ref: false }).then(() => {
      throw new Error('the database does not answer')
    })
    return Promise.race([renewal, late])
  }

  /** Stops what others have now, or have ended. */
  async function look(): Promise<void> {
    if (looking) hintedMeanwhile = true
    if (looking || runs.size === 0) return
    looking = true
    do {
      hintedMeanwhile = false
      const before = [...runs.values()].map(({ run }) => run)
      // A database that is away is asked again; for how long it may be, the leases say.
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
      // Nobody knows how long a person takes.
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
