/**
 * Calls of MCP tools by code in the sandbox: `errand.mcp.SERVER.TOOL(…)`. A call takes the same path as a model's call: its
 * intent is stored first, its result is redacted, stored and counted. But the result goes to the code, not to the model, so
 * restore.ts ignores these events (`via`).
 *
 * A tool that needs approval is refused: a person may decide long after the time limit of the code, and after a crash the code
 * could not wait again. The model calls such a tool itself.
 */
import { setImmediate as otherWork } from 'node:timers/promises'
import type { Sandbox } from '../../sandbox/port.ts'
import type { ToolEnding } from '../../telemetry/events.ts'
import type { Tool, ToolOutcome } from '../../tools/port.ts'
import { truncateMiddle } from '../../tools/truncate.ts'
import { listen } from '../run/network.ts'
import type { Redactor } from '../run/redactor.ts'
import { type CodeAnswer, type CodeCall, createCodeEndpoint } from './code-endpoint.ts'
import type { AgentContext } from './context.ts'
import { toolContext } from './tool-call.ts'

const PORT = 3129
/** Maximum number of calls by code, and of lists of the tools, in the time of one worker. A call adds two events to the log. */
const MAX_REQUESTS = 2_000
const SPENT = `Code has made ${MAX_REQUESTS} calls in this run, which is the limit.`
/** Maximum size of a result for the code. */
const MAX_RESULT_BYTES = 16 * 1024 * 1024
/** Maximum size of arguments, in characters, and of a result, in bytes, in the log. */
const LOGGED_ARGS = 16 * 1024
const LOGGED_RESULT = 4 * 1024
/** Characters that are redacted before other work of the event loop may run. */
const SLICE = 256 * 1024

type CodeContext = Pick<AgentContext, 'deps' | 'run' | 'models' | 'toolbox' | 'nextStep'>

export interface CodeCalls {
  /** Makes the MCP tools callable in the sandbox, before code runs in it. `step`: the call that runs the code. */
  offer(sandbox: Sandbox, step: number): Promise<void>
  /** Stops the calls. Their results are in the log when it resolves. */
  close(): Promise<void>
}

export function createCodeCalls(context: CodeContext): CodeCalls {
  const { run, toolbox, nextStep } = context
  const { recorder } = run
  const offered = new WeakMap<Sandbox, Promise<void>>()
  let via = 0
  let requests = 0
  for (const { callId, via: codeStep } of run.past.restored.openCodeCalls) {
    const output = 'The server was interrupted while this ran, so its outcome is unknown.'
    recorder.append({ type: 'tool_result', step: nextStep(), output, duration_ms: 0, callId, via: codeStep })
  }
  const mcpTools = () => [...toolbox.tools().values()].filter(({ mcp }) => mcp)

  const endpoint = createCodeEndpoint({
    list() {
      if (++requests > MAX_REQUESTS) return refused(SPENT)
      return { failed: false, text: JSON.stringify(mcpTools().map(describe)), isJson: true }
    },
    async call(call, signal) {
      const tool = mcpTools().find(({ mcp }) => mcp!.server === call.server && mcp!.tool === call.tool)
      if (!tool) return refused(`There is no tool ${JSON.stringify(`${call.server}.${call.tool}`.slice(0, 160))}.`)
      if (++requests > MAX_REQUESTS) return refused(SPENT)
      return perform(context, tool, call, via, signal)
    },
  })

  async function open(sandbox: Sandbox): Promise<void> {
    await sandbox.setEnvironment({ ERRAND_MCP_PORT: String(PORT) })
    await listen(sandbox, PORT, endpoint.handle)
  }

  return {
    async offer(sandbox, step) {
      via = step
      if (!run.spec.tools.includes('code_execution') || run.spec.mcp.length === 0) return
      const opening = offered.get(sandbox) ?? open(sandbox)
      offered.set(sandbox, opening)
      await opening
    },
    close: endpoint.close,
  }
}

function describe({ mcp, definition, repeatable = false, needsApproval = false }: Tool) {
  const { description, parameters } = definition
  return { server: mcp!.server, tool: mcp!.tool, description, parameters, repeatable, approval: needsApproval }
}

function refused(text: string): CodeAnswer {
  return { failed: true, text, isJson: false }
}

/** Rejects if the run was stopped and this worker must not write the result. */
async function perform(
  context: CodeContext,
  tool: Tool,
  { args }: CodeCall,
  via: number,
  gone: AbortSignal,
): Promise<CodeAnswer> {
  const { deps, run, nextStep } = context
  const { recorder, meter, redactor, claim } = run
  const { name } = tool.definition
  const step = nextStep()
  const callId = `code-${step}`
  const shown = loggedArgs(args)
  recorder.append({ type: 'tool_call', step, name, args: shown, callId, via })
  await recorder.flush()
  meter.addToolCall()
  const startedAt = performance.now()
  const ending: ToolEnding = tool.needsApproval ? 'refused' : 'answered'
  const outcome: ToolOutcome = tool.needsApproval
    ? { output: `${name} needs a person's approval, so code can't call it. Call it as a tool.`, failed: true }
    : await tool.run(args, {
        ...toolContext(context, step, AbortSignal.any([run.signal, gone])),
        sandbox: () => run.workspace.open(run.spec.inputFiles),
        onOutput: () => {},
        vision: false,
        documents: false,
        outputBytes: MAX_RESULT_BYTES,
        forCode: true,
      })
  run.signal.throwIfAborted()
  const text = await redactInSlices(redactor, outcome.output)
  const output = truncateMiddle(text, LOGGED_RESULT).text
  const ms = performance.now() - startedAt
  deps.emit({ type: 'tool_called', run: claim, name, callId, args: shown, output, ending, redact: redactor.redact, ms })
  recorder.append({ type: 'tool_result', step: nextStep(), output, duration_ms: Math.round(ms), callId, via })
  await recorder.flush()
  return { failed: outcome.failed === true, text, isJson: outcome.isJson === true }
}

function loggedArgs(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const text = JSON.stringify(args)
  return text.length > LOGGED_ARGS ? { truncated: text.slice(0, LOGGED_ARGS) } : args
}

async function redactInSlices(redactor: Redactor, text: string): Promise<string> {
  if (text.length <= SLICE) return redactor.redact(text)
  const parts: string[] = []
  const stream = redactor.stream((part) => parts.push(part))
  for (let at = 0; at < text.length; at += SLICE) {
    stream.write(text.slice(at, at + SLICE))
    await otherWork()
  }
  stream.end()
  return parts.join('')
}
