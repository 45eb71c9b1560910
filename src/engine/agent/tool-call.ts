/** One tool call of a model: stores the intent, runs the tool, stores the result. */
import type { AssistantPart, ToolMessage } from '../../domain/message.ts'
import { SandboxError } from '../../sandbox/port.ts'
import type { Decision } from '../../store/approvals.ts'
import type { ToolEnding } from '../../telemetry/events.ts'
import type { Tool, ToolOutcome } from '../../tools/port.ts'
import { keepMedia } from '../run/media.ts'
import type { OpenCall, Refusal } from '../run/restore.ts'
import type { Run } from '../run/run.ts'
import { stopCause } from '../run/stop.ts'
import { reservedMs } from './allowance.ts'
import { awaitApproval, denial } from './approval.ts'
import type { AgentContext } from './context.ts'

interface Acted extends ToolOutcome {
  readonly ending: ToolEnding
}

type ToolCallPart = Extract<AssistantPart, { type: 'tool_call' }>

/**
 * Performs a call, unless it is refused, and returns its result for the model. `begun`: the progress of an earlier worker.
 * Then the intent is in the log already, and only the sandbox may know whether the tool ran.
 */
export async function performCall(
  context: AgentContext,
  asked: ToolCallPart,
  refusal?: Refusal,
  begun?: Pick<OpenCall, 'step' | 'approval' | 'outlived'>,
): Promise<ToolMessage> {
  const { deps, run } = context
  const { recorder, meter, signal, redactor } = run
  const call = context.toolbox.resolve(asked)
  const step = begun?.step ?? context.nextStep()
  if (begun?.step === undefined) {
    recorder.append({ type: 'tool_call', step, name: call.name, args: shownArgs(call) })
    await recorder.flush()
  }
  meter.addToolCall()
  const startedAt = performance.now()
  const tell = (ending: ToolEnding, output?: string) => tellCall(context, call, ending, output, startedAt)
  let acted: Acted
  try {
    const earlier = begun?.step === undefined ? undefined : begun
    acted = refusal
      ? { output: REFUSALS[refusal], ending: 'refused' }
      : await approveAndAct(context, call, step, earlier)
    signal.throwIfAborted()
  } catch (error) {
    tell('stopped')
    throw error
  }
  const output = redactor.redact(acted.output)
  tell(acted.ending, output)
  const { media } = acted
  const duration_ms = Math.round(performance.now() - startedAt)
  const resultStep = context.nextStep()
  const kept = media && (await keepMedia(deps, run.claim.id, resultStep, media))
  recorder.append({ type: 'tool_result', step: resultStep, output, duration_ms })
  if (kept) recorder.attach(kept)
  return { role: 'tool', callId: asked.callId, name: asked.name, output, ...(media && { media }) }
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

function shownArgs(call: ToolCallPart): Readonly<Record<string, unknown>> {
  return call.args ?? { invalid: call.argsText.slice(0, 2_000) }
}

/** Runs a call that needs no approval, or has it. A call that only waited for its approval never started. */
async function approveAndAct(
  context: AgentContext,
  call: ToolCallPart,
  step: number,
  begun: Pick<OpenCall, 'approval' | 'outlived'> | undefined,
): Promise<Acted> {
  const tools = context.toolbox.tools()
  const tool = tools.get(call.name)
  const approval = begun?.approval
  if (typeof approval === 'object') return denied({ approve: false, step, reason: approval.reason })
  if (approval === 'asked' || (tool?.needsApproval && call.args && approval === undefined)) {
    const waiting = { step, name: call.name, args: shownArgs(call) }
    const decision = await awaitApproval(context.deps, context.run, waiting, approval === 'asked')
    return decision.approve ? act(context, call, step) : denied(decision)
  }
  return act(context, call, step, begun)
}

function denied(decision: Decision): Acted {
  return { output: denial(decision), ending: 'denied' }
}

async function act(
  context: AgentContext,
  call: ToolCallPart,
  step: number,
  begun?: Pick<OpenCall, 'outlived'>,
): Promise<Acted> {
  const { deps, run, models } = context
  const { recorder, redactor, workspace } = run
  const { policy } = run.spec
  const tool = context.toolbox.tools().get(call.name)
  if (!tool || !call.args) return { output: await context.toolbox.explain(call), ending: 'refused' }
  const shown = redactor.stream((text) => {
    recorder.append({ type: 'tool_output', step, text })
    deps.onPoint?.('tool-speaks')
  })
  try {
    deps.onPoint?.('tool-begins')
    if (begun && !(await repeatable(tool, run, begun))) return OUTCOME_UNKNOWN
    const maxToolMs = policy.maxToolDuration * 1_000
    const endsAt = performance.now() + maxToolMs
    // The time of the last turn is reserved.
    const runEndsInMs = () => run.remainingMs() - reservedMs(run.spec)
    const running = tool.run(call.args, {
      sandbox: (preloaded) => workspace.open(run.spec.inputFiles, preloaded),
      key: `step-${step}`,
      remainingMs: () => Math.max(0, Math.min(runEndsInMs(), endsAt - performance.now())),
      maxToolMs,
      onOutput: shown.write,
      signal: context.kill,
      vision: models[0].vision,
      documents: models[0].documents,
      outputBytes: policy.sandbox.outputBytes,
    })
    const outcome = await Promise.race([running, leftBehind(run.signal)])
    deps.onPoint?.('tool-ended')
    if (outcome.sandboxLost) workspace.forget()
    return { ...outcome, ending: 'answered' }
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'lost') throw error
    workspace.forget()
    return OUTCOME_UNKNOWN
  } finally {
    shown.end()
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
  { outlived }: Pick<OpenCall, 'outlived'>,
): Promise<boolean> {
  if (tool.repeatable) return true
  if (!tool.keyed || outlived) return false
  if (past.restored.neverReady) return true
  const sandbox = await workspace.open(spec.inputFiles)
  return !sandbox.fresh
}
