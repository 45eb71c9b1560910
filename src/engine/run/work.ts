/** The run's own part: files by URL, the model and its tools, the loop. Ended by value. */
import { BlobsUnavailable } from '../../blobs/port.ts'
import { ErrandError } from '../../domain/errors.ts'
import type { RunSpec } from '../../domain/interaction.ts'
import type { Catalogue, CatalogueEntry, ModelDescription } from '../../models/port.ts'
import { SandboxError } from '../../sandbox/port.ts'
import type { Claim } from '../../store/claim-row.ts'
import { MAX_OUTAGE_MS, retryWhileDatabaseDown } from '../../store/retry-while-down.ts'
import type { RunScope } from '../../tools/port.ts'
import { reservedMs } from '../agent/allowance.ts'
import { runLoop } from '../agent/loop.ts'
import { keepMedia } from '../agent/media.ts'
import type { Meter } from '../agent/meter.ts'
import { openingMessages, systemPrompt } from '../agent/opening.ts'
import type { Restored } from '../agent/restore.ts'
import { openToolbox, type Toolbox } from '../agent/toolbox.ts'
import type { EngineParts } from '../dependencies.ts'
import type { Place } from '../queue/slots.ts'
import type { Auditor } from './auditor.ts'
import { fetchLinkedFiles } from './linked-files.ts'
import type { RunNetwork } from './network.ts'
import { failure, internalFailure, type Outcome, storeOutOfReach } from './outcome.ts'
import { type Recorder, RecorderStopped } from './recorder.ts'
import type { Redactor } from './redactor.ts'
import { stopCause } from './stop.ts'
import type { Workspace } from './workspace.ts'

/** A claimed interaction at work. */
export interface Work {
  readonly parts: EngineParts
  readonly claim: Claim
  /** As it was accepted. */
  readonly spec: RunSpec
  /** Given up while it waits for a person. */
  readonly place: Place
  readonly recorder: Recorder
  readonly meter: Meter
  readonly workspace: Workspace
  readonly audit: Auditor['audit']
  readonly network: RunNetwork
  readonly redactor: Redactor
  readonly restored: Restored
  readonly remainingMs: () => number
  readonly signal: AbortSignal
}

/** The run's own part, ended by value. Undefined where it was stopped and has no end to write. */
export async function work(run: Work): Promise<Outcome | undefined> {
  const { parts, claim, recorder, workspace, redactor, restored, remainingMs, signal } = run
  const { spec: accepted } = run
  const entry = parts.catalogue.get(accepted.model)
  if (!entry) return failure('unavailable', `The model ${accepted.model} is not configured on this server any more.`)
  if (entry.unavailable !== undefined) return failure('unavailable', entry.unavailable)
  let toolbox: Toolbox | undefined
  try {
    const files = { ...claim, onConnect: run.audit('file') }
    const spec = await fetchLinkedFiles(parts, files, accepted, recorder, restored.stage, signal)
    const opening = await retryWhileDatabaseDown(MAX_OUTAGE_MS, () => openingMessages(parts, spec, entry), signal)
    if (opening.historyCut) recorder.append({ type: 'warning', ...HISTORY_CUT })
    toolbox = await openToolbox(parts.toolProviders, scopeOf(run, spec, entry), redactor)
    let step = restored.lastStep
    return await runLoop({
      interactionId: claim.id,
      run: claim,
      emit: parts.emit,
      spec,
      faultOf: (answer) => parts.schemas.faultOf(claim.projectId, spec.responseFormat, answer, signal),
      models: [entry, ...fallbacksOf(parts.catalogue, entry)],
      toolbox,
      toolScope: {
        openSandbox: (preloaded) => workspace.open(spec.inputFiles, preloaded),
        forgetSandbox: workspace.forget,
        neverBegan: restored.neverReady,
        kill: killSignal(signal),
        remainingMs: () => Math.max(0, remainingMs() - reservedMs(spec)),
        vision: entry.vision,
        documents: entry.documents,
        maxToolMs: spec.policy.maxToolDuration * 1_000,
        outputBytes: spec.policy.sandbox.outputBytes,
      },
      db: parts.db,
      hub: parts.hub,
      redactor,
      recorder,
      place: run.place,
      epoch: claim.epoch,
      meter: run.meter,
      signal,
      system: systemPrompt(spec, parts.inside, toolbox.about),
      opening: opening.messages,
      restored,
      nextStep: () => ++step,
      onPoint: parts.onPoint,
      keepMedia: (shownBy, media) => keepMedia(parts, claim.id, shownBy, media),
      remainingMs,
      maxModelCalls: parts.limits.maxModelCalls,
      budget: {
        left: () =>
          retryWhileDatabaseDown(MAX_OUTAGE_MS, () => parts.budgets.left(claim.projectId, recorder.flush), signal),
        isSpent: () => parts.budgets.isSpent(claim.projectId),
      },
    })
  } catch (error) {
    return explain(run, error)
  } finally {
    await toolbox?.close()
  }
}

/** Those that can be called. */
function fallbacksOf(catalogue: Catalogue, { fallbacks = [] }: CatalogueEntry): CatalogueEntry[] {
  return fallbacks.flatMap((name) => {
    const entry = catalogue.get(name)
    return entry && entry.unavailable === undefined ? [entry] : []
  })
}

function scopeOf(
  { parts, claim, recorder, workspace, audit, network, redactor, remainingMs, signal }: Work,
  spec: RunSpec,
  { vision, documents }: ModelDescription,
): RunScope {
  return {
    interactionId: claim.id,
    projectId: claim.projectId,
    spec,
    signal,
    remainingMs,
    vision,
    documents,
    openSandbox: () => workspace.open(spec.inputFiles),
    openCompanion: workspace.openCompanion,
    connectCompanion: network.connectCompanion,
    openProxy: network.openProxy,
    audit,
    conceal: redactor.conceal,
    warn: ({ message, ...warning }) =>
      recorder.append({ type: 'warning', ...warning, message: redactor.redact(message) }),
    log: parts.log,
  }
}

/**
 * Aborts only where the process in the sandbox must end with the run. One that was lost to another worker, or is handed
 * over at shutdown, goes on: whoever takes the run up joins it.
 */
function killSignal(signal: AbortSignal): AbortSignal {
  const kill = new AbortController()
  const onAbort = () => {
    const cause = stopCause(signal)
    if (cause === 'deadline' || cause === 'cancelled' || cause === 'defect') kill.abort(signal.reason)
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return kill.signal
}

const HISTORY_CUT = {
  code: 'history_incomplete',
  param: 'previousInteractionId',
  message: 'Part of the earlier conversation was deleted or is too long ago; the run goes on with what is left.',
}

/** What was thrown, as an outcome; undefined where the run has no end to write. */
function explain({ parts, claim, spec, signal }: Work, error: unknown): Outcome | undefined {
  switch (stopCause(signal)) {
    case 'deadline':
      return failure(
        'deadline_exceeded',
        `The run took longer than policy.maxTurnDuration, ${spec.policy.maxTurnDuration} s. Raise it, or split the work.`,
      )
    case 'cancelled':
    case 'lost':
    case 'shutdown':
      return undefined
    case 'defect':
      return internalFailure()
    case undefined:
      if (error instanceof RecorderStopped) return undefined
      if (error instanceof ErrandError) return failure(error.code, error.message)
      parts.log.error({ err: error, interactionId: claim.id }, 'a run failed')
      if (error instanceof BlobsUnavailable) return storeOutOfReach()
      return error instanceof SandboxError ? failure('sandbox_unavailable', error.message) : internalFailure()
  }
}
