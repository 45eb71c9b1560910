/**
 * `code_execution`: runs code in the interaction's session of a language. How the step ended is told in words, because
 * the model has to act on it; only a sandbox that can't be had is thrown.
 */
import { z } from 'zod'
import type { ExecResult, Language } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import { cutMiddle } from './cut.ts'
import type { Tool } from './port.ts'

/** Longer code belongs into a file. Characters. */
const MAX_CODE = 1_000_000
/** No single step takes longer, however long the run may: a hung step must not eat an eight-hour run. */
const MAX_STEP_MS = 60 * 60 * 1000

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
        { key: context.key, language, code, timeoutMs: Math.max(1, Math.min(context.remainingMs(), MAX_STEP_MS)) },
        context.onOutput,
        context.signal,
      )
      const output = describeResult(result, language, context.outputBytes)
      return { output, sandboxLost: result.end.kind === 'lost' }
    },
  }
}

/** What was printed, then a bracketed line for everything else the model should know. */
function describeResult(result: ExecResult, language: Language, maxBytes: number): string {
  const { text, cut } = cutMiddle(result.output.replace(/\n+$/, ''), maxBytes)
  const notes: string[] = []
  if (text === '' && result.end.kind !== 'lost') notes.push('It printed nothing.')
  if (cut || result.truncated) {
    notes.push('The output was too long and its middle was left out: print less, or save it to a file and read parts.')
  }
  const end = describeEnd(result)
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
function describeEnd({ end, durationMs }: ExecResult): string | undefined {
  switch (end.kind) {
    case 'exit':
      return end.code === 0 ? undefined : `It ended with exit code ${end.code} after ${seconds(durationMs)}.`
    case 'signal':
      return `It was ended by ${end.signal} after ${seconds(durationMs)}.`
    case 'timeout':
      return `It was stopped after ${seconds(end.afterMs)}: that was all the time it had. What it had not finished is not done.`
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
