/** One claimed interaction at work in this process: the object that its log, its model, its tools and its end share. */
import type { RunSpec } from '../../domain/interaction.ts'
import type { Claim } from '../../store/claim-row.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { type Auditor, createAuditor } from './auditor.ts'
import { createMeter, type Meter } from './meter.ts'
import { createRunNetwork, type RunNetwork } from './network.ts'
import type { Past } from './past.ts'
import { createRecorder, type Recorder, type RecorderStop } from './recorder.ts'
import { createRedactor, type Redactor } from './redactor.ts'
import { Stop, stopCause } from './stop.ts'
import { createWorkspace, type Workspace } from './workspace.ts'

/** A run's share of its worker's capacity. A run that waits for a person releases it. */
export interface WorkerSlot {
  /** Idempotent. */
  release(): void
  /** Resolves when the run holds a slot again, first come first served. Rejects with the signal's reason. */
  reacquire(signal: AbortSignal): Promise<void>
}

/** Known before anything of the run is opened. */
interface RunStart {
  readonly claim: Claim
  readonly spec: RunSpec
  readonly slot: WorkerSlot
  /** The stored state that earlier workers left. */
  readonly past: Past
  /** Milliseconds since 1970, by the database's clock. */
  readonly now: () => number
  /** Milliseconds until the deadline. */
  readonly remainingMs: () => number
}

export interface Run extends RunStart {
  readonly recorder: Recorder
  readonly meter: Meter
  readonly auditor: Auditor
  readonly redactor: Redactor
  readonly network: RunNetwork
  readonly workspace: Workspace
  /** Aborts with a Stop when work on the run must end. */
  readonly signal: AbortSignal
  /** Frees what the run holds in this process. Its sandboxes stay if another worker goes on with it. */
  close(): Promise<void>
}

/** `abort` stops the run; the recorder uses it too, when it can write no more. */
export function openRun(deps: EngineDependencies, start: RunStart, abort: AbortController): Run {
  const { claim, spec, past, now } = start
  const { signal } = abort
  const recorder = createRecorder({
    ...deps,
    now,
    claim,
    stage: past.restored.stage,
    onStopped: (cause, error) => stopRun(deps, claim, abort, cause, error),
  })
  const auditor = createAuditor({ ...deps, now }, claim.id)
  const redactor = createRedactor()
  const network = createRunNetwork(deps, claim, spec, auditor, redactor)
  if (past.restored.stage === 'queued') recorder.append({ type: 'stage', stage: 'working' })
  const meter = createRunMeter(deps, start)
  const leaveBudget = deps.budgets.enter(claim.projectId, meter)
  const opened = { ...start, recorder, meter, auditor, redactor, network, signal }
  const workspace = openWorkspace(deps, opened)
  return {
    ...opened,
    workspace,
    async close() {
      leaveBudget()
      network.close()
      // At shutdown the next worker goes on with the sandbox; after a lost lease it already may.
      const cause = stopCause(signal)
      if (cause !== 'shutdown' && cause !== 'lost') await workspace.destroy()
    },
  }
}

function stopRun(
  { log }: Pick<EngineDependencies, 'log'>,
  { id, epoch }: Claim,
  abort: AbortController,
  cause: RecorderStop,
  error: Error | undefined,
): void {
  const fields = { interactionId: id, epoch, cause, err: error }
  if (cause === 'defect') log.error(fields, 'the database refused a write of a run, which ends as failed')
  else log.warn(fields, 'lost the right to write an interaction')
  abort.abort(new Stop(cause === 'defect' ? 'defect' : 'lost'))
}

/** Without `past`, the meter of a run that has not begun. */
export function createRunMeter(
  { catalogue }: Pick<EngineDependencies, 'catalogue'>,
  { claim, spec, past, now }: Pick<RunStart, 'claim' | 'spec' | 'now'> & { readonly past?: Past },
): Meter {
  return createMeter({
    model: spec.model,
    priceOf: (model) => catalogue.get(model)?.price,
    createdAt: claim.createdAt,
    now,
    turns: past?.turns ?? [],
    toolCalls: past?.restored.finishedToolCalls ?? 0,
  })
}

function openWorkspace(
  deps: EngineDependencies,
  { claim, spec, past, recorder, meter, network, remainingMs, signal }: Omit<Run, 'workspace' | 'close'>,
): Workspace {
  let provisioningAt = 0
  return createWorkspace({
    ...deps,
    interactionId: claim.id,
    epoch: claim.epoch,
    limits: spec.policy.sandbox,
    mounts: () => deps.skills.mounts(spec),
    outputLimits: deps.limits,
    remainingMs,
    signal,
    inherited: past.restored.sandbox,
    outputsTaken: past.outputsTaken,
    connect: network.connect,
    async onProvision(state) {
      if (state !== 'started') meter.startSandbox()
      if (state === 'resumed') return
      recorder.append({ type: 'stage', stage: state === 'started' ? 'provisioning' : 'working' })
      if (state === 'started') provisioningAt = performance.now()
      else {
        // A worker that finds neither stage in the log may assume that nothing ran.
        await recorder.flush()
        deps.emit({ type: 'provisioned', run: claim, ms: performance.now() - provisioningAt })
      }
    },
  })
}
