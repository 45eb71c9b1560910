/**
 * One claimed interaction from claim to end:
 *
 *   claim → restore → files by URL → [provisioning → working]* → settling → end
 *
 * `settling` takes the output files and the sandbox's end before the terminal event is written, so that whoever sees
 * `completed` finds the files there and no process left.
 */
import { BlobsUnavailable } from '../../blobs/port.ts'
import type { RunSpec } from '../../domain/interaction.ts'
import type { Usage } from '../../domain/usage.ts'
import type { Claim } from '../../store/claim-row.ts'
import { MAX_ATTEMPTS } from '../../store/claims.ts'
import { ALL_EVENTS, outputsTaken, readEvents } from '../../store/events.ts'
import { MAX_OUTAGE_MS, retryWhileDatabaseDown } from '../../store/retry-while-down.ts'
import { readTurns, type Turn } from '../../store/turns.ts'
import type { LeavingCause } from '../../telemetry/events.ts'
import { logWith } from '../../telemetry/log.ts'
import { readMedia } from '../agent/media.ts'
import { createMeter, type Meter } from '../agent/meter.ts'
import { NOTHING_RESTORED, type Restored, restore } from '../agent/restore.ts'
import type { EngineParts } from '../dependencies.ts'
import type { Place } from '../queue/slots.ts'
import { createAuditor } from './auditor.ts'
import { createRunNetwork, type RunNetwork } from './network.ts'
import { failure, type Outcome, storeOutOfReach } from './outcome.ts'
import { createRecorder, type Recorder, RecorderStopped } from './recorder.ts'
import { createRedactor } from './redactor.ts'
import { settle } from './settle.ts'
import { Stop, type StopCause, stopCause } from './stop.ts'
import { work } from './work.ts'
import { createWorkspace, type Workspace } from './workspace.ts'

export interface Run {
  readonly id: string
  readonly epoch: number
  /** Ends the run's work: model connection and sandbox process included. */
  stop(stop: Stop): void
  usage(): Usage
  /** Resolves when nothing of the run is left in this process. Never rejects. */
  readonly finished: Promise<void>
}

/** Starts the run, in that place. `leave` is called with why it is worked on no more; `finished` waits for it. */
export function startRun(
  shared: EngineParts,
  claim: Claim,
  spec: RunSpec,
  place: Place,
  leave: (claim: Claim, cause: LeavingCause) => Promise<void>,
): Run {
  const parts: EngineParts = { ...shared, now: databaseClock(claim) }
  const abort = new AbortController()
  let meter: Meter | undefined
  const onMeter = (made: Meter) => {
    meter = made
  }
  const startedAt = performance.now()
  const { id: interactionId, projectId, epoch } = claim
  const finished = logWith({ interactionId, projectId, epoch }, () =>
    execute(parts, claim, spec, place, abort, onMeter),
  )
    .then(
      () => leavingCause(abort.signal) ?? 'ended',
      (error) => {
        if (!(error instanceof RecorderStopped)) parts.log.error({ err: error, interactionId }, 'a run broke off')
        return leavingCause(abort.signal) ?? 'broken'
      },
    )
    .then(async (cause) => {
      parts.emit({ type: 'left', run: claim, cause, ms: performance.now() - startedAt })
      await leave(claim, cause)
    })
    .catch((error) => {
      parts.log.error({ err: error, interactionId }, 'a run could not be given back; its lease has to run out')
    })
  return {
    id: claim.id,
    epoch: claim.epoch,
    stop: (stop) => abort.abort(stop),
    usage: () => (meter ?? startMeter(parts, claim, spec, [], 0)).usage(),
    finished,
  }
}

/** The database's clock, as all leases hang on it: this worker's own may be wrong. Milliseconds since 1970. */
function databaseClock({ claimedAt }: Claim): () => number {
  const since = performance.now()
  return () => claimedAt + Math.floor(performance.now() - since)
}

/** Undefined where the run went to its own end, as it does after a deadline or a defect. */
function leavingCause(signal: AbortSignal): Exclude<StopCause, 'deadline' | 'defect'> | undefined {
  const cause = stopCause(signal)
  return cause === 'deadline' || cause === 'defect' ? undefined : cause
}

async function execute(
  parts: EngineParts,
  claim: Claim,
  spec: RunSpec,
  place: Place,
  abort: AbortController,
  onMeter: (meter: Meter) => void,
): Promise<void> {
  const { signal } = abort
  const waitedMs = claim.claimedAt - claim.createdAt
  parts.emit({ type: 'claimed', run: claim, spec, waitedMs, givenUp: isGivenUp(claim) })
  parts.onPoint?.('claimed')
  const deadline = performance.now() + spec.policy.maxTurnDuration * 1_000 - (claim.claimedAt - claim.startedAt)
  const remainingMs = () => Math.max(0, deadline - performance.now())
  const timer = setTimeout(() => abort.abort(new Stop('deadline')), remainingMs())
  const past = await readPast(parts, claim)
  const recorder = createRecorder({
    ...parts,
    claim,
    stage: past.restored.stage,
    onStopped(cause, error) {
      const fields = { interactionId: claim.id, epoch: claim.epoch, cause, err: error }
      if (cause === 'defect') parts.log.error(fields, 'the database refused a write of a run, which ends as failed')
      else parts.log.warn(fields, 'lost the right to write an interaction')
      abort.abort(new Stop(cause === 'defect' ? 'defect' : 'lost'))
    },
  })
  const auditor = createAuditor(parts, claim.id)
  const redactor = createRedactor()
  const network = createRunNetwork(parts, claim, spec, auditor, redactor)
  let workspace: Workspace | undefined
  let leaveBudget: (() => void) | undefined
  try {
    if (past.restored.stage === 'queued') recorder.append({ type: 'stage', stage: 'working' })
    const meter = startMeter(parts, claim, spec, past.turns, past.restored.finishedToolCalls)
    onMeter(meter)
    leaveBudget = parts.budgets.enter(claim.projectId, meter)
    const { restored } = past
    workspace = openWorkspace(parts, claim, spec, recorder, meter, past, network, remainingMs, signal)
    const outcome =
      past.problem ??
      (await work({
        parts,
        claim,
        spec,
        place,
        recorder,
        meter,
        workspace,
        audit: auditor.audit,
        network,
        redactor,
        restored,
        remainingMs,
        signal,
      }))
    network.close()
    await auditor.settle()
    if (outcome) await settle(parts, claim, spec, recorder, meter, workspace, outcome)
  } finally {
    leaveBudget?.()
    clearTimeout(timer)
    network.close()
    // At shutdown the sandbox is left for whoever goes on; a lost one belongs to somebody else already.
    const cause = stopCause(signal)
    if (cause !== 'shutdown' && cause !== 'lost') await workspace?.destroy()
  }
}

interface Past {
  readonly turns: readonly Turn[]
  readonly restored: Restored
  readonly outputsTaken: boolean
  /** Why there is no going on: an interaction that kills its workers must end before it can do so again. */
  readonly problem?: Outcome
}

function isGivenUp({ attempts }: Claim): boolean {
  return attempts > MAX_ATTEMPTS
}

async function readPast(parts: EngineParts, claim: Claim): Promise<Past> {
  const { db, log } = parts
  const nothing = { turns: [], restored: { ...NOTHING_RESTORED, stage: claim.stage }, outputsTaken: false }
  if (claim.epoch === 1) return nothing
  // Its sandbox may still be there: it is looked for and ended.
  const ended = { ...nothing, restored: { ...NOTHING_RESTORED, sandbox: 'ready', stage: 'working' } } as const
  if (isGivenUp(claim)) {
    const message = `The server stopped ${MAX_ATTEMPTS} times while it worked on this interaction; it was given up.`
    return { ...ended, problem: failure('internal', message) }
  }
  try {
    return await retryWhileDatabaseDown(MAX_OUTAGE_MS, async () => {
      const turns = await readTurns(db, claim.id)
      const restored = restore(turns, await readEvents(db, claim.id, 0, ALL_EVENTS), await readMedia(parts, claim.id))
      return { turns, restored, outputsTaken: await outputsTaken(db, claim.id) }
    })
  } catch (error) {
    log.error({ err: error, interactionId: claim.id }, 'what is stored of a run could not be read')
    const problem =
      error instanceof BlobsUnavailable
        ? storeOutOfReach()
        : failure('internal', 'What is stored of the run could not be read; the server log has more.')
    return { ...ended, problem }
  }
}

function startMeter(
  { catalogue, now }: EngineParts,
  claim: Claim,
  spec: RunSpec,
  turns: readonly Turn[],
  toolCalls: number,
): Meter {
  const priceOf = (model: string) => catalogue.get(model)?.price
  return createMeter({ model: spec.model, priceOf, createdAt: claim.createdAt, now, turns, toolCalls })
}

function openWorkspace(
  parts: EngineParts,
  claim: Claim,
  spec: RunSpec,
  recorder: Recorder,
  meter: Meter,
  { restored, outputsTaken }: Past,
  { connect }: RunNetwork,
  remainingMs: () => number,
  signal: AbortSignal,
): Workspace {
  let provisioningAt = 0
  return createWorkspace({
    ...parts,
    interactionId: claim.id,
    epoch: claim.epoch,
    limits: spec.policy.sandbox,
    mounts: () => parts.skills.mounts(spec),
    outputLimits: parts.limits,
    remainingMs,
    signal,
    inherited: restored.sandbox,
    outputsTaken,
    connect,
    async onProvision(state) {
      if (state !== 'started') meter.startSandbox()
      if (state === 'taken up') return
      recorder.append({ type: 'stage', stage: state === 'started' ? 'provisioning' : 'working' })
      if (state === 'started') provisioningAt = performance.now()
      else {
        // A worker that finds neither in the log may take it that nothing ran.
        await recorder.flush()
        parts.emit({ type: 'provisioned', run: claim, ms: performance.now() - provisioningAt })
      }
    },
  })
}
