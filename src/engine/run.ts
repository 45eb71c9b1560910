/**
 * One claimed interaction from claim to end:
 *
 *   claim → restore → files by URL → [provisioning → working]* → settling → end
 *
 * `settling` takes the output files and the sandbox's end before the terminal event is written, so that whoever sees
 * `completed` finds the files there and no process left.
 */
import { BlobsUnavailable } from '../blobs/port.ts'
import { ErrandError, type ErrorCode, type RunError, toRunError } from '../domain/errors.ts'
import type { RunEvent, StopReason, TerminalStatus } from '../domain/event.ts'
import type { RunSpec } from '../domain/interaction.ts'
import type { Usage } from '../domain/usage.ts'
import type { Model } from '../models/port.ts'
import { SandboxError } from '../sandbox/port.ts'
import type { Claim } from '../store/claims.ts'
import { outputFilesStatement, readEvents } from '../store/events.ts'
import { readTurns, type Turn } from '../store/turns.ts'
import { fetchLinkedFiles } from './linked-files.ts'
import { runLoop } from './loop.ts'
import { keepMedia, readMedia } from './media.ts'
import { createMeter, type Meter } from './meter.ts'
import { openingMessages, systemPrompt } from './opening.ts'
import type { EngineParts } from './parts.ts'
import { createRecorder, type Recorder, RecorderLost } from './recorder.ts'
import { type Inheritance, NOTHING_RESTORED, type Restored, restore } from './restore.ts'
import { Stop, stopCause } from './stop.ts'
import { createWorkspace, type Outputs, type Workspace } from './workspace.ts'

const ALL_EVENTS = 1_000_000
/** Claims after which an interaction is taken to kill its workers. */
const MAX_ATTEMPTS = 3
/** Output files of a run that failed are still taken, but nobody waits longer for them. */
const COLLECT_AFTER_FAILURE_MS = 1_000
const COLLECT_MS = 120_000

export interface Run {
  readonly id: string
  readonly epoch: number
  /** Ends the run's work: model connection and sandbox process included. */
  stop(stop: Stop): void
  usage(): Usage
  /** Resolves, always, when nothing of the run is left in this process. The cause where it was stopped without an end. */
  readonly finished: Promise<void>
}

interface Outcome {
  readonly status: TerminalStatus
  readonly stopReason?: StopReason
  readonly error?: RunError
}

/** Starts the run. `handOver` is called where it stopped at shutdown and somebody else may go on. */
export function startRun(
  parts: EngineParts,
  claim: Claim,
  spec: RunSpec,
  handOver: (claim: Claim) => Promise<void>,
): Run {
  const abort = new AbortController()
  let meter: Meter | undefined
  const onMeter = (made: Meter) => {
    meter = made
  }
  const finished = execute(parts, claim, spec, abort, onMeter)
    .catch((error) => {
      if (!(error instanceof RecorderLost)) parts.log.error({ err: error, interactionId: claim.id }, 'a run broke off')
    })
    .then(async () => {
      if (stopCause(abort.signal) === 'shutdown') await handOver(claim)
    })
  return {
    id: claim.id,
    epoch: claim.epoch,
    stop: (stop) => abort.abort(stop),
    usage: () => (meter ?? startMeter(parts, claim, spec, [], 0)).usage(),
    finished,
  }
}

async function execute(
  parts: EngineParts,
  claim: Claim,
  spec: RunSpec,
  abort: AbortController,
  onMeter: (meter: Meter) => void,
): Promise<void> {
  const { signal } = abort
  const deadline = performance.now() + spec.policy.maxTurnDuration * 1_000 - (claim.claimedAt - claim.startedAt)
  const remainingMs = () => Math.max(0, deadline - performance.now())
  const timer = setTimeout(() => abort.abort(new Stop('deadline')), remainingMs())
  const past = await readPast(parts, claim)
  const recorder = createRecorder({
    ...parts,
    claim,
    stage: past.restored.stage,
    onLost(cause, error) {
      parts.log.warn(
        { interactionId: claim.id, epoch: claim.epoch, cause, err: error },
        'lost the right to write an interaction',
      )
      abort.abort(new Stop('lost'))
    },
  })
  let workspace: Workspace | undefined
  try {
    if (past.restored.stage === 'queued') recorder.append({ type: 'stage', stage: 'working' })
    const meter = startMeter(parts, claim, spec, past.turns, past.restored.finishedToolCalls)
    onMeter(meter)
    workspace = openWorkspace(parts, claim, recorder, meter, past.restored.sandbox, remainingMs, signal)
    const outcome =
      past.problem ?? (await work(parts, claim, spec, recorder, meter, workspace, past.restored, remainingMs, signal))
    if (outcome) await settle(parts, claim, recorder, meter, workspace, outcome)
  } finally {
    clearTimeout(timer)
    // At shutdown the sandbox is left for whoever goes on; a lost one belongs to somebody else already.
    const cause = stopCause(signal)
    if (cause !== 'shutdown' && cause !== 'lost') await workspace?.destroy()
  }
}

interface Past {
  readonly turns: readonly Turn[]
  readonly restored: Restored
  /** Why there is no going on: an interaction that kills its workers must end before it can do so again. */
  readonly problem?: Outcome
}

async function readPast(parts: EngineParts, claim: Claim): Promise<Past> {
  const { db, log } = parts
  const nothing = { turns: [], restored: NOTHING_RESTORED }
  if (claim.epoch === 1) return nothing
  if (claim.attempts > MAX_ATTEMPTS) {
    const message = `The server stopped ${MAX_ATTEMPTS} times while it worked on this interaction; it was given up.`
    // Its sandbox may still be there: it is looked for and ended.
    const restored: Restored = { ...NOTHING_RESTORED, sandbox: 'ready', stage: 'working' }
    return { turns: [], restored, problem: failure('internal', message) }
  }
  try {
    const turns = await readTurns(db, claim.id)
    return {
      turns,
      restored: restore(turns, await readEvents(db, claim.id, 0, ALL_EVENTS), await readMedia(parts, claim.id)),
    }
  } catch (error) {
    log.error({ err: error, interactionId: claim.id }, 'what is stored of a run could not be read')
    return {
      ...nothing,
      problem: failure('internal', 'What is stored of the run could not be read; the server log has more.'),
    }
  }
}

function startMeter(
  { catalogue, now }: EngineParts,
  claim: Claim,
  spec: RunSpec,
  turns: readonly Turn[],
  toolCalls: number,
): Meter {
  const price = catalogue.get(spec.model)?.price
  return createMeter({ price, createdAt: claim.createdAt, now, turns: turns.map((turn) => turn.tokens), toolCalls })
}

function openWorkspace(
  parts: EngineParts,
  claim: Claim,
  recorder: Recorder,
  meter: Meter,
  inherited: Inheritance,
  remainingMs: () => number,
  signal: AbortSignal,
): Workspace {
  return createWorkspace({
    ...parts,
    interactionId: claim.id,
    epoch: claim.epoch,
    limits: parts.sandboxLimits,
    maxOutputBytes: parts.limits.outputFilesBytes,
    remainingMs,
    signal,
    inherited,
    onProvision(state) {
      recorder.append({ type: 'stage', stage: state === 'started' ? 'provisioning' : 'working' })
      if (state === 'ready') meter.startSandbox()
    },
  })
}

/** The run's own part, ended by value. Undefined where it was stopped and has no end to write. */
async function work(
  parts: EngineParts,
  claim: Claim,
  accepted: RunSpec,
  recorder: Recorder,
  meter: Meter,
  workspace: Workspace,
  restored: Restored,
  remainingMs: () => number,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const entry = parts.catalogue.get(accepted.model)
  if (!entry) return failure('unavailable', `The model ${accepted.model} is not configured on this server any more.`)
  if (entry.unavailable !== undefined) return failure('unavailable', entry.unavailable)
  try {
    const model: Model = await entry.open()
    const spec = await fetchLinkedFiles(parts, claim.id, accepted, recorder, restored.stage, signal)
    const opening = await openingMessages(parts.db, spec)
    if (opening.historyCut) recorder.append({ type: 'warning', ...HISTORY_CUT })
    let step = restored.lastStep
    return await runLoop({
      interactionId: claim.id,
      spec,
      model,
      tools: new Map(spec.tools.map((name) => [name, parts.tools.get(name)!])),
      toolScope: {
        openSandbox: () => workspace.open(spec.inputFiles),
        forgetSandbox: workspace.forget,
        neverBegan: restored.sandbox === 'unfinished',
        kill: killSignal(signal),
        remainingMs,
        vision: entry.vision,
        documents: entry.documents,
        outputBytes: parts.sandboxLimits.outputBytes,
      },
      db: parts.db,
      recorder,
      meter,
      signal,
      system: systemPrompt(spec, parts.inside),
      opening: opening.messages,
      restored,
      nextStep: () => ++step,
      keepMedia: (shownBy, media) => keepMedia(parts, claim.id, shownBy, media),
      maxModelCalls: parts.limits.maxModelCalls,
    })
  } catch (error) {
    return explain(parts, claim, accepted, signal, error)
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
    if (cause === 'deadline' || cause === 'cancelled') kill.abort(signal.reason)
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
function explain(
  parts: EngineParts,
  claim: Claim,
  spec: RunSpec,
  signal: AbortSignal,
  error: unknown,
): Outcome | undefined {
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
    case undefined:
      if (error instanceof RecorderLost) return undefined
      if (error instanceof ErrandError) return failure(error.code, error.message)
      parts.log.error({ err: error, interactionId: claim.id }, 'a run failed')
      if (error instanceof BlobsUnavailable)
        return failure('unavailable', 'The file store can’t be reached. Try again later.')
      return error instanceof SandboxError
        ? failure('sandbox_unavailable', error.message)
        : failure(
            'internal',
            'Something went wrong in the server; the log of the server has more under this interaction.',
          )
  }
}

function failure(code: ErrorCode, message: string): Outcome {
  return { status: 'failed', error: toRunError(code, message) }
}

async function settle(
  parts: EngineParts,
  claim: Claim,
  recorder: Recorder,
  meter: Meter,
  workspace: Workspace,
  outcome: Outcome,
): Promise<void> {
  if (workspace.opened) {
    recorder.append({ type: 'stage', stage: 'settling' })
    const outputs = await collect(parts, claim, workspace, outcome)
    if (outputs.unstored !== undefined) outcome = failure('unavailable', outputs.unstored)
    for (const problem of firstFew(outputs.problems)) {
      recorder.append({
        type: 'warning',
        code: 'output_file_skipped',
        message: `Not every output file could be kept: ${problem}.`,
      })
    }
    if (outputs.files.length > 0) recorder.attach(() => outputFilesStatement(parts.db, claim, outputs.files))
    // The files stand in the store before the sandbox goes: a crash in between loses nothing.
    await recorder.flush()
    await workspace.destroy()
  }
  const usage = meter.usage()
  await recorder.end({ ...outcome, usage, events: terminalEvents(claim.id, outcome, usage) })
  parts.onEnd(outcome.status, usage)
}

const PROBLEMS_TOLD = 20

function firstFew(problems: readonly string[]): readonly string[] {
  const more = problems.length - PROBLEMS_TOLD
  return more > 0 ? [...problems.slice(0, PROBLEMS_TOLD), `and ${more} more`] : problems
}

/** `unstored`: the files are there, but could not be kept: without them the run is not what it says. */
async function collect(
  { log }: EngineParts,
  claim: Claim,
  workspace: Workspace,
  outcome: Outcome,
): Promise<Outputs & { unstored?: string }> {
  const withinMs = outcome.status === 'completed' ? COLLECT_MS : COLLECT_AFTER_FAILURE_MS
  const late = Promise.withResolvers<Outputs>()
  const timer = setTimeout(
    () => late.resolve({ files: [], problems: ['the sandbox did not answer in time'] }),
    withinMs,
  )
  try {
    return await Promise.race([workspace.collect(), late.promise])
  } catch (error) {
    log.error({ err: error, interactionId: claim.id }, 'output files could not be stored')
    return { files: [], problems: [], unstored: 'The output files could not be stored. Try again later.' }
  } finally {
    clearTimeout(timer)
  }
}

/** The last events of every log: `error` where it failed, then `completed`, always. */
export function terminalEvents(interactionId: string, outcome: Outcome, usage: Usage): RunEvent[] {
  const { status, stopReason, error } = outcome
  const completed: RunEvent = { type: 'completed', interactionId, status, usage, ...(stopReason && { stopReason }) }
  return error ? [{ type: 'error', interactionId, ...error }, completed] : [completed]
}
