/** One tool call of a model, whose intent is in the log: runs the tool, stores the result. */
import { shownToModel } from '../../domain/long-result.ts'
import type { ToolCallPart, ToolMessage } from '../../domain/message.ts'
import type { ToolDefinition } from '../../models/port.ts'
import { type Sandbox, SandboxError } from '../../sandbox/port.ts'
import type { Decision } from '../../store/approvals.ts'
import type { ToolEnding } from '../../telemetry/events.ts'
import type { Tool, ToolContext, ToolOutcome } from '../../tools/port.ts'
import { keepMedia } from '../run/media.ts'
import type { Refusal } from '../run/restore.ts'
import type { Run } from '../run/run.ts'
import { stopCause } from '../run/stop.ts'
import { reservedMs } from './allowance.ts'
import { denial } from './approval.ts'
import type { AgentContext } from './context.ts'
import { recordedText } from './long-results.ts'

interface Acted extends ToolOutcome {
  readonly ending: ToolEnding
}

/** A call whose intent is in the log. */
export interface PlannedCall {
  /** The call as the model made it. */
  readonly asked: ToolCallPart
  /** The call of the tool that runs (`Toolbox.resolve`). */
  readonly call: ToolCallPart
  readonly callId: string
  readonly step: number
  readonly refusal: Refusal | undefined
  /** Undefined if the call needs no approval. */
  readonly decision: Decision | undefined
  /** An earlier worker may have started it. Only the sandbox may know whether the tool ran. */
  readonly begun: boolean
  readonly outlived: boolean
}

/** Performs a call, unless it was refused or denied. Returns its result for the model. */
export async function performCall(
  context: AgentContext,
  planned: PlannedCall,
  kill: AbortSignal,
): Promise<ToolMessage> {
  const { deps, run } = context
  const { recorder, meter, signal } = run
  const { asked, call, callId, refusal, decision } = planned
  signal.throwIfAborted()
  meter.addToolCall()
  const startedAt = performance.now()
  const tell = (ending: ToolEnding, output?: string) => tellCall(context, call, ending, output, startedAt)
  let acted: Acted
  try {
    if (refusal) acted = { output: REFUSALS[refusal], ending: 'refused' }
    else if (decision?.approve === false) acted = { output: denial(decision), ending: 'denied' }
    else acted = await act(context, planned, kill)
    signal.throwIfAborted()
  } catch (error) {
    tell('stopped')
    throw error
  }
  const text = await recordedText(run, context.toolbox.tools(), acted, { name: call.name, key: keyOf(planned.step) })
  tell(acted.ending, text.output)
  const { media } = acted
  const duration_ms = Math.round(performance.now() - startedAt)
  const kept = media && (await keepMedia(deps, run.claim.id, media))
  // Numbered last: other calls of the turn may end meanwhile.
  const step = context.nextStep()
  recorder.append({ type: 'tool_result', step, ...text, duration_ms, callId })
  if (kept) recorder.attach(kept(step))
  const output = shownToModel(text)
  const file = text.full?.path
  const result = { role: 'tool', callId: asked.callId, name: asked.name, output, step } as const
  return { ...result, ...(file !== undefined && { file }), ...(media && { media }) }
}

/** Identifies the call within its interaction, also after a crash. */
function keyOf(step: number): string {
  return `step-${step}`
}

const REFUSALS: Readonly<Record<Refusal, string>> = {
  truncated:
    'This call was not run: it was cut off at the output limit of one reply. Write it in smaller parts, a long file piece by piece.',
  declined: 'This call was not run: the run has reached one of its limits. Answer now with what you have.',
}

function tellCall(
  { deps, run: { claim, redactor } }: AgentContext,
  call: ToolCallPart,
  ending: ToolEnding,
  output: string | undefined,
  startedAt: number,
): void {
  const { name, callId } = call
  const ms = performance.now() - startedAt
  const { redact } = redactor
  deps.emit({ type: 'tool_called', run: claim, name, callId, args: shownArgs(call), output, ending, redact, ms })
}

/** The arguments as the log shows them. */
export function shownArgs(call: ToolCallPart): Readonly<Record<string, unknown>> {
  return call.args ?? { invalid: call.argsText.slice(0, 2_000) }
}

async function act(context: AgentContext, planned: PlannedCall, kill: AbortSignal): Promise<Acted> {
  const { deps, run } = context
  const { recorder, redactor, workspace } = run
  const { call, step } = planned
  const tool = context.toolbox.tools().get(call.name)
  if (isGone(context, call.name)) return { output: goneTool(context, call.name), ending: 'refused' }
  if (!tool || !call.args) return { output: await context.toolbox.explain(call), ending: 'refused' }
  const shown = redactor.stream((text) => {
    recorder.append({ type: 'tool_output', step, text })
    deps.onPoint?.('tool-speaks')
  })
  let sandbox: Sandbox | undefined
  const open = async (preloaded?: boolean) => {
    sandbox = await workspace.open(run.spec.inputFiles, preloaded)
    if (call.name === 'code_execution') await context.codeCalls.offer(sandbox, step)
    return sandbox
  }
  try {
    deps.onPoint?.('tool-begins')
    if (planned.begun && !(await repeatable(tool, run, planned))) return OUTCOME_UNKNOWN
    const running = tool.run(call.args, { ...toolContext(context, step, kill), sandbox: open, onOutput: shown.write })
    const outcome = await Promise.race([running, leftBehind(run.signal)])
    deps.onPoint?.('tool-ended')
    if (outcome.sandboxLost) workspace.forget(sandbox)
    return { ...outcome, ending: 'answered' }
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'lost') throw error
    workspace.forget(sandbox)
    return OUTCOME_UNKNOWN
  } finally {
    shown.end()
  }
}

export function toolContext(
  { run, models }: Pick<AgentContext, 'run' | 'models'>,
  step: number,
  signal: AbortSignal,
): Omit<ToolContext, 'sandbox' | 'onOutput'> {
  const { policy } = run.spec
  const maxToolMs = policy.maxToolDuration * 1_000
  const endsAt = performance.now() + maxToolMs
  // The time of the last turn is reserved.
  const runEndsInMs = () => run.remainingMs() - reservedMs(run.spec)
  return {
    key: keyOf(step),
    remainingMs: () => Math.max(0, Math.min(runEndsInMs(), endsAt - performance.now())),
    maxToolMs,
    signal,
    vision: models[0].vision,
    documents: models[0].documents,
    outputBytes: policy.sandbox.outputBytes,
  }
}

/**
 * Rejects when the run is lost or requeued. On a deadline or a cancellation it does not: the tool ends itself, and then its
 * process is gone.
 */
function leftBehind(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = () => {
      const cause = stopCause(signal)
      if (cause === 'lost' || cause === 'shutdown') reject(signal.reason)
    }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

const OUTCOME_UNKNOWN: Acted = {
  output:
    'The server was interrupted while this ran, so its outcome is unknown; files and variables of the sandbox may be gone. ' +
    'Look at what is there before you go on.',
  ending: 'interrupted',
}

/**
 * True if an interrupted call may be repeated: the tool is harmless, its sandbox was never ready, or its sandbox still exists
 * and recognizes the call by its key.
 */
async function repeatable(
  tool: Tool,
  { spec, past, workspace }: Run,
  { outlived }: Pick<PlannedCall, 'outlived'>,
): Promise<boolean> {
  if (tool.repeatable) return true
  if (!tool.keyed || outlived) return false
  if (past.restored.neverReady) return true
  const sandbox = await workspace.open(spec.inputFiles)
  return !sandbox.fresh
}

/** Whether an earlier worker offered a tool to the model that this one does not have. */
function isGone({ frame, toolbox, models }: AgentContext, name: string): boolean {
  const has = (tools: readonly ToolDefinition[]) => tools.some((tool) => tool.name === name)
  return has(frame.for(models[0]).tools) && !has(toolbox.definitions())
}

function goneTool({ toolbox }: AgentContext, name: string): string {
  const names = toolbox.definitions().map((tool) => tool.name)
  const left = names.length > 0 ? `The tools are: ${names.join(', ')}.` : 'No tools are left.'
  return `The tool ${JSON.stringify(name)} is no longer available. ${left}`
}
