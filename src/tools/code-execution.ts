/**
 * `code_execution`: runs code in the interaction's session of a language. How the step ended is told in words, because
 * the model has to act on it; only a sandbox that can't be had is thrown.
 */
import { z } from 'zod'
import type { ExecResult, Language } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import { cutMiddle } from './cut.ts'
import type { Tool, ToolContext } from './port.ts'

/** Longer code belongs into a file. Characters. */
const MAX_CODE = 1_000_000

/** Between the call's beginning and its step's. */
const CLOCK_MS = 1000

const LANGUAGES = ['python', 'javascript', 'bash'] as const satisfies readonly Language[]

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
  }),
)

const DESCRIPTION = `Runs code in an isolated Linux sandbox and returns what it printed (stdout and stderr).
Each language keeps one session: variables, imports and functions of earlier calls are still there. In Python the value of the last expression is shown.
The working directory holds the input files. Files saved under outputs/ are returned to the caller, and matplotlib figures by themselves; nothing else outlives the run.
There is no network: packages can't be installed; use what is there, above all the standard library.`

export function createCodeExecution(): Tool {
  return {
    definition: { name: 'code_execution', description: DESCRIPTION, parameters: ARGUMENTS.parameters },
    keyed: true,
    async run(args, context) {
      const checked = ARGUMENTS.check(args)
      if (!checked.ok) return { output: checked.message }
      const { code, language = 'python' } = checked.value
      const sandbox = await context.sandbox()
      const result = await sandbox.exec(
        { key: context.key, language, code, timeoutMs: Math.max(1, context.remainingMs()) },
        context.onOutput,
        context.signal,
      )
      const output = describeResult(result, language, context)
      return { output, sandboxLost: result.end.kind === 'lost' }
    },
  }
}

/** What was printed, then a bracketed line for everything else the model should know. */
function describeResult(result: ExecResult, language: Language, context: ToolContext): string {
  const { text, cut } = cutMiddle(result.output.replace(/\n+$/, ''), context.outputBytes)
  const notes: string[] = []
  if (text === '' && result.end.kind !== 'lost') notes.push('It printed nothing.')
  if (cut || result.truncated) {
    notes.push(
      `The output was longer than ${context.outputBytes.toLocaleString('en')} bytes, what is kept of one call, and its middle was left out: print less, or save it to a file and read parts.`,
    )
  }
  const end = describeEnd(result, context.maxToolMs)
  if (result.memoryKill) notes.push('A process was killed because the memory limit of the sandbox was reached.')
  if (end) notes.push(end)
  if (result.sessionRestarted) {
    notes.push(
      `The ${language} session was started anew: variables, imports and functions of earlier calls are gone, files are still there.`,
    )
  }
  return [text, ...notes.map((note) => `[${note}]`)].filter((line) => line !== '').join('\n')
}

/** Undefined where it ended as it should. */
function describeEnd({ end, durationMs }: ExecResult, maxToolMs: number): string | undefined {
  switch (end.kind) {
    case 'exit':
      return end.code === 0 ? undefined : `It ended with exit code ${end.code} after ${seconds(durationMs)}.`
    case 'signal':
      return `It was ended by ${end.signal} after ${seconds(durationMs)}.`
    case 'timeout':
      return end.afterMs + CLOCK_MS < maxToolMs
        ? `It was stopped after ${seconds(end.afterMs)}: the whole run's time was over. What it had not finished is not done.`
        : `It was stopped after ${seconds(maxToolMs)}, the time limit of one tool call. What it had not finished is not done: do it in smaller parts.`
    case 'memory_limit':
      return `It was stopped because it needed more than the sandbox's ${end.limitMiB} MiB of memory. Work on smaller parts.`
    case 'cancelled':
      return 'It was stopped because the run was cancelled.'
    case 'lost':
      return 'The sandbox was lost while this ran: the outcome is unknown, it may have run in part or whole. The next call gets a fresh sandbox with the input files alone.'
    default:
      return end satisfies never
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
