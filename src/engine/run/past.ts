/** The stored state of a run from its earlier workers, read when a worker claims it. */
import { BlobsUnavailable } from '../../blobs/port.ts'
import type { Claim } from '../../store/claim-row.ts'
import { MAX_ATTEMPTS } from '../../store/claims.ts'
import { ALL_EVENTS, countToolResults, outputsTaken, readEvents } from '../../store/events.ts'
import { readFrame, type StoredFrame } from '../../store/frames.ts'
import { MAX_OUTAGE_MS, retryWhileDatabaseDown } from '../../store/retry-while-down.ts'
import { readTurns, type Turn } from '../../store/turns.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { readMedia } from './media.ts'
import { failure, type Outcome, storeOutOfReach } from './outcome.ts'
import { NOTHING_RESTORED, type Restored, restore } from './restore.ts'

export interface Past {
  readonly turns: readonly Turn[]
  readonly restored: Restored
  readonly outputsTaken: boolean
  /** The frame of the last model request. Undefined if none is stored. */
  readonly frame?: StoredFrame
  /** Why the run can't go on. An interaction that kills its workers must end before it does so again. */
  readonly problem?: Outcome
}

/** Whether every attempt was used. */
export function isOutOfAttempts({ attempts }: Claim): boolean {
  return attempts > MAX_ATTEMPTS
}

/** Never rejects: state that can't be read is a `problem`. */
export async function readPast(deps: EngineDependencies, claim: Claim): Promise<Past> {
  const { db, log } = deps
  const nothing = { turns: [], restored: { ...NOTHING_RESTORED, stage: claim.stage }, outputsTaken: false }
  if (claim.epoch === 1) return nothing
  // A sandbox of the run may still exist: with `ready`, the end looks for it and destroys it.
  const ended = { ...nothing, restored: { ...NOTHING_RESTORED, sandbox: 'ready', stage: 'working' } } as const
  if (isOutOfAttempts(claim)) {
    const message = `The server stopped ${MAX_ATTEMPTS} times while it worked on this interaction; it was given up.`
    const { turns, finishedToolCalls } = await readUsed(deps, claim)
    const restored = { ...ended.restored, finishedToolCalls }
    return { ...ended, turns, restored, problem: failure('internal', message) }
  }
  try {
    return await retryWhileDatabaseDown(MAX_OUTAGE_MS, async () => {
      const turns = await readTurns(db, claim.id)
      const restored = restore(turns, await readEvents(db, claim.id, 0, ALL_EVENTS), await readMedia(deps, claim.id))
      const frame = await readFrame(db, claim.id)
      return { turns, restored, outputsTaken: await outputsTaken(db, claim.id), frame }
    })
  } catch (error) {
    log.error({ err: error, interactionId: claim.id }, 'could not read the stored state of a run')
    const problem =
      error instanceof BlobsUnavailable
        ? storeOutOfReach()
        : failure('internal', 'The stored state of the run could not be read; the server log has more.')
    return { ...ended, problem }
  }
}

/** Reads the usage of the run so far, which its end reports. Returns no usage if it can't be read. */
async function readUsed({ db, log }: EngineDependencies, { id }: Claim) {
  try {
    return await retryWhileDatabaseDown(MAX_OUTAGE_MS, async () => ({
      turns: await readTurns(db, id),
      finishedToolCalls: await countToolResults(db, id),
    }))
  } catch (error) {
    log.error({ err: error, interactionId: id }, 'could not read what a given-up run has used')
    return { turns: [], finishedToolCalls: 0 }
  }
}
