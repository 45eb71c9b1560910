/** One tool call of a model: the intent in the log, the act, the result in the log. */
import type { AssistantPart, MediaPart, ToolMessage } from '../../domain/message.ts'
import type { Sandbox } from '../../sandbox/port.ts'
import { SandboxError } from '../../sandbox/port.ts'
import type { Decision } from '../../store/approvals.ts'
import type { Emit, RunName, ToolEnding } from '../../telemetry/events.ts'
import type { Tool, ToolOutcome } from '../../tools/port.ts'
import type { EngineParts } from '../dependencies.ts'
import type { Attachment } from '../run/recorder.ts'
import type { Redactor } from '../run/redactor.ts'
import { stopCause } from '../run/stop.ts'
import { type ApprovalContext, awaitApproval, denial } from './approval.ts'
import type { Meter } from './meter.ts'
import type { OpenCall, Refusal } from './restore.ts'
import type { Toolbox } from './toolbox.ts'

/** What tools are given of the run. */
export interface ToolScope {
  /** Made on first need. Throws SandboxError. */
  openSandbox(preloaded?: boolean): Promise<Sandbox>
  /** Forgets a sandbox that was lost, so that the next need makes a new one. */
  forgetSandbox(): void
  /** What an interrupted call was to run in was never ready, so nothing of it happened. */
  readonly neverBegan: boolean
  /** Ends the process in the sandbox; the run's own signal only ends the waiting for it. */
  readonly kill: AbortSignal
  /** Milliseconds that tools may still take: the last turn's are left out. */
  readonly remainingMs: () => number
  /** The longest that one call may take. */
  readonly maxToolMs: number
  readonly vision: boolean
  readonly documents: boolean
  readonly outputBytes: number
}

export interface CallContext extends ApprovalContext {
  readonly run: RunName
  readonly emit: Emit
  readonly toolbox: Toolbox
  readonly toolScope: ToolScope
  readonly meter: Meter
  readonly redactor: Redactor
  readonly nextStep: () => number
  readonly onPoint: EngineParts['onPoint']
  /** Stores what the result of that step shows; the attachment belongs to its event. */
  readonly keepMedia: (step: number, media: readonly MediaPart[]) => Promise<Attachment | undefined>
}

interface Acted extends ToolOutcome {
  readonly ending: ToolEnding
}

type ToolCallPart = Extract<AssistantPart, { type: 'tool_call' }>

/**
 * Performs a call, unless it is refused, and returns its result for the model. `begun`: how far an earlier worker came with
 * it. Then its intent is in the log already, and only the sandbox may know whether the act happened.
 */
export async function performCall(
  context: CallContext,
  call: ToolCallPart,
  refusal?: Refusal,
  begun?: Pick<OpenCall, 'step' | 'approval' | 'outlived'>,
): Promise<ToolMessage> {
  const { recorder, meter, signal, redactor } = context
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
  const kept = media && (await context.keepMedia(resultStep, media))
  recorder.append({ type: 'tool_result', step: resultStep, output, duration_ms })
  if (kept) recorder.attach(kept)
  return { role: 'tool', callId: call.callId, name: call.name, output, ...(media && { media }) }
}

const REFUSALS: Readonly<Record<Refusal, string>> = {
  truncated:
    'This call was not run: it was cut off at the output limit of one reply. Write it in smaller parts, a long file piece by piece.',
  declined: 'This call was not run: the run has reached one of its limits. Answer now with what you have.',
}

function tellCall(
  { run, emit, redactor: { redact } }: CallContext,
  call: ToolCallPart,
  ending: ToolEnding,
  output: string | undefined,
  startedAt: number,
): void {
  const { name, callId } = call
  const ms = performance.now() - startedAt
  emit({ type: 'tool_called', run, name, callId, args: shownArgs(call), output, ending, redact, ms })
}

function shownArgs(call: ToolCallPart): Readonly<Record<string, unknown>> {
  return call.args ?? { invalid: call.argsText.slice(0, 2_000) }
}

/** What does not need a person's word, or has it, is done. A call that was only waiting for it was never begun. */
async function approveAndAct(
  context: CallContext,
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
    const decision = await awaitApproval(context, waiting, approval === 'asked')
    return decision.approve ? act(context, call, step) : denied(decision)
  }
  return act(context, call, step, begun)
}

function denied(decision: Decision): Acted {
  return { output: denial(decision), ending: 'denied' }
}

async function act(
  context: CallContext,
  call: ToolCallPart,
  step: number,
  begun?: Pick<OpenCall, 'outlived'>,
): Promise<Acted> {
  const { toolScope, recorder, redactor } = context
  const tools = context.toolbox.tools()
  const tool = tools.get(call.name)
  if (!tool) return { output: unknownTool(call.name, tools), ending: 'refused' }
  if (!call.args)
    return {
      output: `The arguments of ${call.name} are not a JSON object, or are nested too deep. Call it again with valid arguments.`,
      ending: 'refused',
    }
  const shown = redactor.stream((text) => {
    recorder.append({ type: 'tool_output', step, text })
    context.onPoint?.('tool-speaks')
  })
  try {
    context.onPoint?.('tool-begins')
    if (begun && !(await repeatable(tool, toolScope, begun))) return OUTCOME_UNKNOWN
    const endsAt = performance.now() + toolScope.maxToolMs
    const running = tool.run(call.args, {
      sandbox: toolScope.openSandbox,
      key: `step-${step}`,
      remainingMs: () => Math.max(0, Math.min(toolScope.remainingMs(), endsAt - performance.now())),
      maxToolMs: toolScope.maxToolMs,
      onOutput: shown.write,
      signal: toolScope.kill,
      vision: toolScope.vision,
      documents: toolScope.documents,
      outputBytes: toolScope.outputBytes,
    })
    const outcome = await Promise.race([running, leftBehind(context.signal)])
    context.onPoint?.('tool-ended')
    if (outcome.sandboxLost) toolScope.forgetSandbox()
    return { ...outcome, ending: 'answered' }
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'lost') throw error
    toolScope.forgetSandbox()
    return OUTCOME_UNKNOWN
  } finally {
    shown.end()
  }
}

/** Rejects when the run is lost or handed over; a deadline or a cancellation is waited for, so that the process is gone. */
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
 * Whether an interrupted call may be asked for again: it does no harm, or it was to run in a sandbox that was never
 * ready, or in one that still lives and knows it by its key, and not in one before that.
 */
async function repeatable(tool: Tool, scope: ToolScope, { outlived }: Pick<OpenCall, 'outlived'>): Promise<boolean> {
  if (tool.repeatable) return true
  if (!tool.keyed || outlived) return false
  if (scope.neverBegan) return true
  const sandbox = await scope.openSandbox()
  return !sandbox.fresh
}

function unknownTool(name: string, tools: ReadonlyMap<string, Tool>): string {
  const names = [...tools.keys()]
  const known = names.length > 0 ? `The tools are: ${names.join(', ')}.` : 'No tools are enabled.'
  return `There is no tool ${JSON.stringify(name.slice(0, 80))}. ${known}`
}
