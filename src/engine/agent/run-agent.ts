/** The agent's part of a run: fetches its files, opens its model and tools, and runs the loop. Returns how the run ends. */
import { BlobsUnavailable } from '../../blobs/port.ts'
import { ErrandError } from '../../domain/errors.ts'
import type { Catalogue, CatalogueEntry, ModelDescription } from '../../models/port.ts'
import { SandboxError } from '../../sandbox/port.ts'
import { MAX_OUTAGE_MS, retryWhileDatabaseDown } from '../../store/retry-while-down.ts'
import type { RunScope } from '../../tools/port.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { fetchLinkedFiles } from '../run/linked-files.ts'
import { failure, internalFailure, type Outcome, storeOutOfReach } from '../run/outcome.ts'
import { RecorderStopped } from '../run/recorder.ts'
import type { Run } from '../run/run.ts'
import { stopCause } from '../run/stop.ts'
import { type CodeCalls, createCodeCalls } from './code-calls.ts'
import { createContextWindows } from './context-size.ts'
import { createConversation } from './conversation.ts'
import { createFrame, instructionNote } from './frame.ts'
import { createIgnoredReporter } from './ignored-settings.ts'
import { runLoop } from './loop.ts'
import { searches } from './many-tools.ts'
import { createNotices } from './notices.ts'
import { openingEntries } from './opening.ts'
import { openToolbox, type Toolbox } from './toolbox.ts'

/** Failures are outcomes. Undefined if the run was stopped and this worker must not write its end. */
export async function runAgent(deps: EngineDependencies, accepted: Run): Promise<Outcome | undefined> {
  const { recorder, signal } = accepted
  const { model } = accepted.spec
  const entry = deps.catalogue.get(model)
  if (!entry) return failure('unavailable', `The model ${model} is not configured on this server any more.`)
  if (entry.unavailable !== undefined) return failure('unavailable', entry.unavailable)
  let toolbox: Toolbox | undefined
  let codeCalls: CodeCalls | undefined
  try {
    const run = { ...accepted, spec: await fetchLinkedFiles(deps, accepted) }
    const { spec, past } = run
    const note = instructionNote(run)
    const { restored } = past
    const readOpening = () => openingEntries(deps, spec, note, restored.entries, entry)
    const opening = await retryWhileDatabaseDown(MAX_OUTAGE_MS, readOpening, signal)
    if (opening.historyCut) recorder.append({ type: 'warning', ...HISTORY_CUT })
    toolbox = await openToolbox(deps.toolProviders, scopeOf(deps, run, entry), run.redactor, {
      window: entry.contextWindow,
      searched: past.frame && searches(past.frame.tools),
    })
    let { lastStep, lastBatch } = restored
    const nextStep = () => ++lastStep
    const models = [entry, ...fallbacksOf(deps.catalogue, entry)] as const
    codeCalls = createCodeCalls({ deps, run, models, toolbox, nextStep })
    const conversation = createConversation(deps, run, opening.entries)
    return await runLoop({
      deps,
      run,
      models,
      toolbox,
      codeCalls,
      windows: createContextWindows(restored.windows),
      reportIgnored: createIgnoredReporter(run),
      frame: createFrame(deps, run, toolbox, note),
      conversation,
      notices: createNotices(deps, run, conversation),
      nextStep,
      nextBatch: () => ++lastBatch,
      kill: killSignal(signal),
    })
  } catch (error) {
    return explain(deps, accepted, error)
  } finally {
    await codeCalls?.close()
    await toolbox?.close()
  }
}

/** The fallbacks that are available. */
function fallbacksOf(catalogue: Catalogue, { fallbacks = [] }: CatalogueEntry): CatalogueEntry[] {
  return fallbacks.flatMap((name) => {
    const entry = catalogue.get(name)
    return entry && entry.unavailable === undefined ? [entry] : []
  })
}

function scopeOf(
  { log }: EngineDependencies,
  { claim, spec, recorder, workspace, auditor, network, redactor, remainingMs, signal }: Run,
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
    audit: auditor.audit,
    conceal: redactor.conceal,
    warn: ({ message, ...warning }) =>
      recorder.append({ type: 'warning', ...warning, message: redactor.redact(message) }),
    log,
  }
}

/**
 * Aborts only if the process in the sandbox must end with the run. After a lost lease or at shutdown the process goes on,
 * and the next worker reconnects to it.
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

/** A thrown error as an outcome. Undefined if this worker must not write the run's end. */
function explain({ log }: EngineDependencies, { claim, spec, signal }: Run, error: unknown): Outcome | undefined {
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
      log.error({ err: error, interactionId: claim.id }, 'a run failed')
      if (error instanceof BlobsUnavailable) return storeOutOfReach()
      return error instanceof SandboxError ? failure('sandbox_unavailable', error.message) : internalFailure()
  }
}
