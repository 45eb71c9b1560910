/**
 * The `code_execution` tool: runs code in the interaction's session of a language. The result says how the code ended, so
 * that the model can act on it. Throws only if there is no sandbox.
 */

import { z } from 'zod'
import { describeNetwork, type Network } from '../domain/network.ts'
import { withoutEnd } from '../domain/trim.ts'
import { type ExecResult, LANGUAGES, type Language, type LimitHit, type Sandbox } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import { installedPackages } from './installed-packages.ts'
import { MAX_JOB_CODE, startJob } from './job.ts'
import type { Tool, ToolContext, ToolOutcome } from './port.ts'
import { truncateMiddle } from './truncate.ts'

/** Maximum characters. Longer code belongs in a file. */
const MAX_CODE = 1_000_000

/** Tolerance between the clock of the call and that of the sandbox. */
const CLOCK_MS = 1000

/** Modules that a preloaded sandbox has, or that import one of them. */
const PRELOADED = /\b(?:numpy|pandas|matplotlib|pylab|scipy|seaborn|sklearn|statsmodels)\b/

/** Default time limit in seconds. Keeps a command that hangs from using up the run's time. */
const DEFAULT_TIMEOUT_S = 120

const ARGUMENTS = toolArguments(
  'code_execution',
  z.object({
    code: z
      .string('must be a string')
      .min(1, 'must not be empty')
      .max(MAX_CODE, `must be at most ${MAX_CODE} characters; write longer code to a file and run the file`)
      .describe('The code to run. Print what you want to see.'),
    language: z
      .enum(LANGUAGES, `must be one of ${LANGUAGES.map((name) => `"${name}"`).join(', ')}`)
      .optional()
      .describe('Default: python.'),
    timeoutSeconds: z
      .number('must be a number')
      .positive('must be greater than 0')
      .optional()
      .describe(`The time limit of this call, in seconds. Default: ${DEFAULT_TIMEOUT_S}, with background none.`),
    background: z
      .boolean('must be true or false')
      .optional()
      .describe(
        'true starts the code as a program of its own, for servers and long work, and returns after a second with the id of the job. Use the tool job then.',
      ),
  }),
)

const DESCRIPTION = `Runs code in an isolated Linux sandbox and returns what it printed (stdout and stderr).
Each language has one session: variables, imports and functions of earlier calls are kept. Calls of one reply run at the same time, except those in the same language: make calls that depend on another's files in a later reply. In Python the value of the last expression is shown.
The working directory contains the input files. Files saved under outputs/ are returned to the caller, and so are open matplotlib figures; all other files are discarded when the run ends.
`

const WITHOUT_NETWORK =
  "There is no network: packages can't be installed. Use the standard library and the installed packages."

const WITH_NETWORK = 'pip can install packages if a package index can be reached.'

/** pip's error if no index has the package. */
const NOT_FOUND_BY_PIP = 'ERROR: No matching distribution found for'

/** `network`: the network access of the sandbox. `servers`: the run's MCP servers, whose tools code may call. */
export function createCodeExecution(network: Network = 'disabled', servers: readonly string[] = []): Tool {
  const offline = network === 'disabled'
  const description =
    DESCRIPTION +
    (offline ? WITHOUT_NETWORK : `${describeNetwork(network)} ${WITH_NETWORK}`) +
    (servers.length > 0 ? describeServers(servers) : '')
  return {
    definition: { name: 'code_execution', description, parameters: ARGUMENTS.parameters },
    keyed: true,
    lane: ({ language = 'python', background }) => (background === true ? 'shared' : `session:${language}`),
    async run(args, context) {
      const checked = ARGUMENTS.check(args)
      if (!checked.ok) return { output: checked.message }
      const { code, language = 'python', timeoutSeconds = DEFAULT_TIMEOUT_S, background } = checked.value
      if (background) return startBackground(context, { code, language, timeoutSeconds: checked.value.timeoutSeconds })
      const limitMs = Math.min(timeoutSeconds * 1_000, context.maxToolMs)
      const sandbox = await context.sandbox(language === 'python' && importsPreloaded(code))
      const result = await sandbox.exec(
        { key: context.key, language, code, timeoutMs: Math.max(1, Math.min(limitMs, context.remainingMs())) },
        context.onOutput,
        context.signal,
      )
      const pip = result.output.includes(NOT_FOUND_BY_PIP) ? await aboutPip(sandbox, context, offline) : []
      const output = describeResult(result, language, context, { limitMs, pip })
      const { end, saved } = result
      const sandboxLost = end.kind === 'lost' || (end.kind === 'memory_limit' && end.lost === true)
      const full = saved && !sandboxLost && { full: { path: saved.path, bytes: saved.bytes } }
      return { output, ...full, sandboxLost }
    },
  }
}

function describeServers(servers: readonly string[]): string {
  return `
Code can call MCP tools: Python \`import errand; errand.mcp["SERVER"].TOOL(key=value)\`, JavaScript \`await errand.mcp["SERVER"].TOOL({key: value})\`. SERVER: ${servers.join(', ')}. TOOL: its name without the prefix.
Use this for many calls or large results: you only see what the code prints. In Python \`help(errand.mcp["SERVER"])\` lists the tools. Tools that need approval can't be called from code.`
}

function startBackground(
  context: ToolContext,
  {
    code,
    language,
    timeoutSeconds,
  }: { readonly code: string; readonly language: Language; readonly timeoutSeconds: number | undefined },
): Promise<ToolOutcome> | ToolOutcome {
  if (Buffer.byteLength(code) > MAX_JOB_CODE) {
    return {
      output: `The job was not started: its code has more than ${MAX_JOB_CODE.toLocaleString('en')} bytes. Write it to a file and run the file.`,
    }
  }
  const timeoutMs = timeoutSeconds === undefined ? {} : { timeoutMs: Math.ceil(timeoutSeconds * 1_000) }
  return startJob(context, { language, code, ...timeoutMs })
}

function importsPreloaded(code: string): boolean {
  const isImport = (statement: string) => /^[ \t]*(?:import|from)[ \t]/.test(statement)
  return code.split(/[;\n]/).some((statement) => isImport(statement) && PRELOADED.test(statement.split('#')[0]!))
}

/** Notes for the model after pip has found no package. */
async function aboutPip(sandbox: Sandbox, context: ToolContext, offline: boolean): Promise<string[]> {
  const installed = await installedPackages(sandbox, context)
  return [
    offline
      ? 'pip found no package because this run has no network; retrying will not help. Use what is installed.'
      : 'pip found no package: the name is wrong, or the network of this run allows no index that has it.',
    ...(installed ? [`Installed Python packages: ${installed}.`] : []),
  ]
}

/** The output, then a line in brackets for everything else that the model should know. */
function describeResult(
  result: ExecResult,
  language: Language,
  context: ToolContext,
  { limitMs, pip }: { readonly limitMs: number; readonly pip: readonly string[] },
): string {
  const { text, cut } = truncateMiddle(withoutEnd(result.output, '\n'), context.outputBytes)
  const notes: string[] = []
  if (text === '' && result.end.kind !== 'lost') notes.push('It printed nothing.')
  if (cut || result.truncated) {
    notes.push(
      `The output was longer than the limit of ${context.outputBytes.toLocaleString('en')} bytes a call, and its middle was left out: ${whereRest(result)}.`,
    )
  }
  notes.push(...pip)
  const end = describeEnd(result, limitMs, context.maxToolMs)
  notes.push(...(result.hits ?? []).map(describeHit))
  if (end) notes.push(end)
  if (result.sessionRestarted) {
    notes.push(
      `The ${language} session was restarted: variables, imports and functions of earlier calls are gone, files are still there.`,
    )
  }
  return [text, ...notes.map((note) => `[${note}]`)].filter((line) => line !== '').join('\n')
}

function whereRest({ saved }: ExecResult): string {
  if (!saved) return 'print less, or save it to a file and read parts'
  return saved.cut
    ? `${saved.path} has only its first ${saved.bytes.toLocaleString('en')} bytes`
    : `${saved.path} has all of it`
}

/** Returns undefined after a normal end. `limitMs`: the limit of this call. `maxToolMs`: the highest limit that a call may set. */
function describeEnd({ end, durationMs }: ExecResult, limitMs: number, maxToolMs: number): string | undefined {
  switch (end.kind) {
    case 'exit':
      return end.code === 0 ? undefined : `It ended with exit code ${end.code} after ${seconds(durationMs)}.`
    case 'signal':
      return `It was ended by ${end.signal} after ${seconds(durationMs)}.`
    case 'timeout':
      if (end.afterMs + CLOCK_MS < limitMs)
        return `It was stopped after ${seconds(end.afterMs)}: the run's time is nearly over. Unfinished work is lost.`
      return limitMs < maxToolMs
        ? `It was stopped after ${seconds(limitMs)}, its time limit. Unfinished work is lost: work in smaller parts, or set timeoutSeconds, at most ${maxToolMs / 1_000}.`
        : `It was stopped after ${seconds(limitMs)}, the time limit of one tool call. Unfinished work is lost: work in smaller parts.`
    case 'memory_limit':
      return end.lost
        ? `The sandbox ran out of its ${end.limitMiB} MiB of memory, which files use too, and was lost. The next call gets a new sandbox with only the input files: keep fewer and smaller files.`
        : `It was stopped because it needed more than the sandbox's ${end.limitMiB} MiB of memory. Work on smaller parts.`
    case 'cancelled':
      return 'It was stopped because the run was cancelled.'
    case 'lost':
      return 'The sandbox was lost while this ran: the outcome is unknown, and the code may have run in part or completely. The next call gets a new sandbox with only the input files.'
    default:
      return end satisfies never
  }
}

/** Names the limit that was reached, its value, and what to do. */
function describeHit(hit: LimitHit): string {
  const n = (figure: number) => figure.toLocaleString('en')
  switch (hit.kind) {
    case 'memory':
      return `A process was killed because the sandbox's memory limit, ${n(hit.mebibytes)} MiB, was reached. Work on smaller parts.`
    case 'process_memory':
      return `A process needed more than ${n(hit.mebibytes)} MiB of memory, the limit of one process. Work on smaller parts.`
    case 'processes':
      return `No more processes or threads could be started: the sandbox's limit of ${n(hit.count)} was reached. Use fewer at once.`
    case 'space':
      return `${hit.place} was full: it holds ${n(hit.mebibytes)} MiB. Remove files that are not needed.`
    case 'files':
      return `${hit.place} could hold no more files: its limit is ${n(hit.count)}. Remove files that are not needed, or combine them.`
    case 'room':
      return `A writable directory was full while it ran: the workspace holds ${n(hit.mebibytes)} MiB and ${n(hit.files)} files, /tmp and /dev/shm hold less.`
    case 'open_files':
      return `A process had ${n(hit.count)} files open, the limit of one process: close files that are no longer needed.`
    case 'processor':
      return `It was throttled to the sandbox's CPU limit of ${hit.cores} ${hit.cores === 1 ? 'core' : 'cores'}.`
    default:
      return hit satisfies never
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
