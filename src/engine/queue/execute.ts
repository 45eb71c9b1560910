/**
 * One claimed interaction from claim to end:
 *
 *   claim → restore → files by URL → [provisioning → working]* → settling → end
 *
 * `settling` stores the output files and destroys the sandboxes before the terminal event is written. A caller that sees
 * `completed` finds the files stored and no process left.
 */
import type { RunSpec } from '../../domain/interaction.ts'
import type { Usage } from '../../domain/usage.ts'
import type { Claim } from '../../store/claim-row.ts'
import type { LeavingCause } from '../../telemetry/events.ts'
import { logWith } from '../../telemetry/log.ts'
import { runAgent } from '../agent/run-agent.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { isOutOfAttempts, readPast } from '../run/past.ts'
import { RecorderStopped } from '../run/recorder.ts'
import { createRunMeter, openRun, type Run, type WorkerSlot } from '../run/run.ts'
import { settle } from '../run/settle.ts'
import { Stop, type StopCause, stopCause } from '../run/stop.ts'

/** A run as its worker sees it. */
export interface Execution {
  readonly id: string
  readonly epoch: number
  /** Ends the work on the run, model connection and sandbox process included. */
  stop(stop: Stop): void
  usage(): Usage
  /** Resolves when nothing of the run is left in this process. Never rejects. */
  readonly finished: Promise<void>
}

/** Starts the run in a slot. `leave` is called with the reason why work on it ended; `finished` waits for it. */
export function startRun(
  deps: EngineDependencies,
  claim: Claim,
  spec: RunSpec,
  slot: WorkerSlot,
  leave: (claim: Claim, cause: LeavingCause) => Promise<void>,
): Execution {
  const abort = new AbortController()
  const now = databaseClock(claim)
  let meter = createRunMeter(deps, { claim, spec, now })
  const onOpen = (run: Run) => {
    meter = run.meter
  }
  const startedAt = performance.now()
  const { id: interactionId, projectId, epoch } = claim
  const finished = logWith({ interactionId, projectId, epoch }, () =>
    execute(deps, { claim, spec, slot, now }, abort, onOpen),
  )
    .then(
      () => leavingCause(abort.signal) ?? 'ended',
      (error) => {
        if (!(error instanceof RecorderStopped)) deps.log.error({ err: error, interactionId }, 'a run broke off')
        return leavingCause(abort.signal) ?? 'broken'
      },
    )
    .then(async (cause) => {
      deps.emit({ type: 'left', run: claim, cause, ms: performance.now() - startedAt })
      await leave(claim, cause)
    })
    .catch((error) => {
      deps.log.error(
        { err: error, interactionId },
        'a run could not be released; another worker takes it when its lease expires',
      )
    })
  return {
    id: claim.id,
    epoch: claim.epoch,
    stop: (stop) => abort.abort(stop),
    usage: () => meter.usage(),
    finished,
  }
}

/** The database's clock, in milliseconds since 1970. Leases depend on it, and this machine's own clock may be wrong. */
function databaseClock({ claimedAt }: Claim): () => number {
  const since = performance.now()
  return () => claimedAt + Math.floor(performance.now() - since)
}

/** Undefined if the run reached its own end; a deadline or a defect counts as one. */
function leavingCause(signal: AbortSignal): Exclude<StopCause, 'deadline' | 'defect'> | undefined {
  const cause = stopCause(signal)
  return cause === 'deadline' || cause === 'defect' ? undefined : cause
}

async function execute(
  deps: EngineDependencies,
  start: Pick<Run, 'claim' | 'spec' | 'slot' | 'now'>,
  abort: AbortController,
  onOpen: (run: Run) => void,
): Promise<void> {
  const { claim, spec } = start
  const waitedMs = claim.claimedAt - claim.createdAt
  deps.emit({ type: 'claimed', run: claim, spec, waitedMs, givenUp: isOutOfAttempts(claim) })
  deps.onPoint?.('claimed')
  const deadline = performance.now() + spec.policy.maxTurnDuration * 1_000 - (claim.claimedAt - claim.startedAt)
  const remainingMs = () => Math.max(0, deadline - performance.now())
  const timer = setTimeout(() => abort.abort(new Stop('deadline')), remainingMs())
  const past = await readPast(deps, claim)
  let run: Run | undefined
  try {
    run = openRun(deps, { ...start, past, remainingMs }, abort)
    onOpen(run)
    const outcome = past.problem ?? (await runAgent(deps, run))
    run.network.close()
    await run.auditor.settle()
    if (outcome) await settle(deps, run, outcome)
  } finally {
    clearTimeout(timer)
    await run?.close()
  }
}
