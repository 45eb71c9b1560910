/**
 * The end of a run: stores its output files, destroys its sandboxes, then writes the last events and the status in one
 * transaction.
 */
import type { RunEvent } from '../../domain/event.ts'
import type { Usage } from '../../domain/usage.ts'
import { outputFilesStatement } from '../../store/events.ts'
import type { EngineDependencies } from '../dependencies.ts'
import { failure, internalFailure, type Outcome } from './outcome.ts'
import type { Outputs } from './outputs.ts'
import type { Recorder } from './recorder.ts'
import type { Run } from './run.ts'

/** Timeout for the output files of a failed run. */
const COLLECT_AFTER_FAILURE_MS = 1_000
const COLLECT_MS = 120_000

/** Ends the run with `outcome`. If a bug prevents that write, the run ends as `internal` after the stored events. */
export async function settle(deps: EngineDependencies, run: Run, outcome: Outcome): Promise<void> {
  const { recorder } = run
  const startedAt = performance.now()
  const end = async (to: Recorder, how: Outcome) => {
    await writeEnd(deps, { ...run, recorder: to }, how)
    deps.emit({ type: 'settled', run: run.claim, ms: performance.now() - startedAt })
  }
  let reopened = recorder.reopen()
  if (!reopened) {
    try {
      return await end(recorder, await keepOutputs(deps, run, outcome))
    } catch (error) {
      reopened = recorder.reopen()
      if (!reopened) throw error
    }
  }
  await end(reopened, internalFailure())
}

/** Stores the output files. Returns the outcome: the run has failed if its files could not be stored. */
async function keepOutputs(deps: EngineDependencies, run: Run, outcome: Outcome): Promise<Outcome> {
  const { claim, recorder, workspace } = run
  if (!workspace.opened()) return outcome
  recorder.append({ type: 'stage', stage: 'settling' })
  const outputs = await collect(deps, run, outcome)
  if (outputs && outputs !== 'unstored') {
    for (const problem of firstFew(outputs.problems)) {
      recorder.append({
        type: 'warning',
        code: 'output_file_skipped',
        message: `Not every output file could be kept: ${problem}.`,
      })
    }
    recorder.attach(() => outputFilesStatement(deps.db, claim, outputs.files))
  }
  // The files are stored before the sandbox is destroyed, so a crash in between loses nothing.
  await recorder.flush()
  deps.onPoint?.('files-stored')
  return outputs === 'unstored'
    ? failure('unavailable', 'The output files could not be stored. Try again later.')
    : outcome
}

async function writeEnd(
  deps: EngineDependencies,
  { claim, spec: { webhook }, recorder, meter, workspace }: Run,
  outcome: Outcome,
): Promise<void> {
  // Even if this worker opened none: an earlier worker may have created one that is not in the log.
  await workspace.destroy()
  deps.onPoint?.('sandbox-gone')
  const usage = meter.usage()
  await recorder.end({ ...outcome, usage, countedFor: claim, events: terminalEvents(claim.id, outcome, usage) })
  const { status, stopReason, error } = outcome
  const end = { status, stopReason, code: error?.code, usage, webhook: webhook ?? false }
  deps.emit({ type: 'ended', interactionId: claim.id, run: claim, ...end })
}

const MAX_PROBLEMS = 20

function firstFew(problems: readonly string[]): readonly string[] {
  const more = problems.length - MAX_PROBLEMS
  return more > 0 ? [...problems.slice(0, MAX_PROBLEMS), `and ${more} more`] : problems
}

/** `unstored`: the files exist but could not be stored. Undefined: an earlier worker stored them. */
async function collect(
  { log }: EngineDependencies,
  { claim, workspace }: Run,
  outcome: Outcome,
): Promise<Outputs | 'unstored' | undefined> {
  const withinMs = outcome.status === 'completed' ? COLLECT_MS : COLLECT_AFTER_FAILURE_MS
  try {
    return await workspace.collect(AbortSignal.timeout(withinMs))
  } catch (error) {
    log.error({ err: error, interactionId: claim.id }, 'output files could not be stored')
    return 'unstored'
  }
}

/** The last events of every log: `error` if it failed, then always `completed`. */
export function terminalEvents(interactionId: string, outcome: Outcome, usage: Usage): RunEvent[] {
  const { status, stopReason, error } = outcome
  const completed: RunEvent = { type: 'completed', interactionId, status, usage, ...(stopReason && { stopReason }) }
  return error ? [{ type: 'error', interactionId, ...error }, completed] : [completed]
}
