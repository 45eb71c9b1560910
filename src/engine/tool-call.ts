/** One tool call of a model: the intent in the log, the act, the result in the log. */
import type { AssistantPart, MediaPart, ToolMessage } from '../domain/message.ts'
import type { Sandbox } from '../sandbox/port.ts'
import { SandboxError } from '../sandbox/port.ts'
import type { Tool, ToolOutcome } from '../tools/port.ts'
import type { Meter } from './meter.ts'
import type { Attachment, Recorder } from './recorder.ts'
import { stopCause } from './stop.ts'
import type { Toolbox } from './toolbox.ts'

/** What tools are given of the run. */
export interface ToolScope {
  /** Made on first need. Throws SandboxError. */
  openSandbox(): Promise<Sandbox>
  /** Forgets a sandbox that was lost, so that the next need makes a new one. */
  forgetSandbox(): void
  /** What an interrupted call was to run in was never ready, so nothing of it happened. */
  readonly neverBegan: boolean
  /** Ends the process in the sandbox; the run's own signal only ends the waiting for it. */
  readonly kill: AbortSignal
  readonly remainingMs: () => number
  /** The longest that one call may take. */
  readonly maxToolMs: number
  readonly vision: boolean
  readonly documents: boolean
  readonly outputBytes: number
}

export interface CallContext {
  readonly toolbox: Toolbox
  readonly toolScope: ToolScope
  readonly recorder: Recorder
  readonly meter: Meter
  readonly signal: AbortSignal
  readonly nextStep: () => number
  /** Stores what the result of that step shows; the attachment belongs to its event. */
  readonly keepMedia: (step: number, media: readonly MediaPart[]) => Promise<Attachment | undefined>
}

type ToolCallPart = Extract<AssistantPart, { type: 'tool_call' }>

/**
 * Performs a call and returns what the model is told. `begun`: the step under which an earlier worker began it; its
 * intent is in the log already, and whether the act happened is what the sandbox may know.
 */
export async function performCall(context: CallContext, call: ToolCallPart, begun?: number): Promise<ToolMessage> {
  const { recorder, meter, signal } = context
  const step = begun ?? context.nextStep()
  if (begun === undefined) {
    recorder.append({
      type: 'tool_call',
      step,
      name: call.name,
      args: call.args ?? { invalid: call.argsText.slice(0, 2_000) },
    })
    await recorder.flush()
  }
  meter.addToolCall()
  const startedAt = performance.now()
  const { output, media } = await act(context, call, step, begun !== undefined)
  if (signal.aborted) throw signal.reason
  const duration_ms = Math.round(performance.now() - startedAt)
  const resultStep = context.nextStep()
  const kept = media && (await context.keepMedia(resultStep, media))
  recorder.append({ type: 'tool_result', step: resultStep, output, duration_ms })
  if (kept) recorder.attach(kept)
  return { role: 'tool', callId: call.callId, name: call.name, output, ...(media && { media }) }
}

async function act(context: CallContext, call: ToolCallPart, step: number, resumed: boolean): Promise<ToolOutcome> {
  const { toolScope, recorder } = context
  const tools = context.toolbox.tools()
  const tool = tools.get(call.name)
  if (!tool) return { output: unknownTool(call.name, tools) }
  if (!call.args)
    return { output: `The arguments of ${call.name} are not a JSON object. Call it again with valid arguments.` }
  try {
    if (resumed && !toolScope.neverBegan && !(await joinable(tool, toolScope))) return { output: OUTCOME_UNKNOWN }
    const endsAt = performance.now() + toolScope.maxToolMs
    const running = tool.run(call.args, {
      sandbox: toolScope.openSandbox,
      key: `step-${step}`,
      remainingMs: () => Math.max(0, Math.min(toolScope.remainingMs(), endsAt - performance.now())),
      maxToolMs: toolScope.maxToolMs,
      onOutput: (text) => recorder.append({ type: 'tool_output', step, text }),
      signal: toolScope.kill,
      vision: toolScope.vision,
      documents: toolScope.documents,
      outputBytes: toolScope.outputBytes,
    })
    const outcome = await Promise.race([running, leftBehind(context.signal)])
    if (outcome.sandboxLost) toolScope.forgetSandbox()
    return outcome
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'lost') throw error
    toolScope.forgetSandbox()
    return { output: OUTCOME_UNKNOWN }
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

const OUTCOME_UNKNOWN =
  'The server was interrupted while this ran, so its outcome is unknown; files and variables of the sandbox may be gone. ' +
  'Look at what is there before you go on.'

/** A call can be asked for again only where its sandbox still lives and knows it by its key. */
async function joinable(tool: Tool, scope: ToolScope): Promise<boolean> {
  if (!tool.keyed) return false
  const sandbox = await scope.openSandbox()
  return !sandbox.fresh
}

function unknownTool(name: string, tools: ReadonlyMap<string, Tool>): string {
  const names = [...tools.keys()]
  const known = names.length > 0 ? `The tools are: ${names.join(', ')}.` : 'No tools are enabled.'
  return `There is no tool ${JSON.stringify(name.slice(0, 80))}. ${known}`
}
