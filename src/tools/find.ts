/**
 * The `find` tool: files by name, and lines by a regular expression. The model gets it with `file_read`. The search runs inside
 * the sandbox (find.py), because a regular expression that the model chooses can take unlimited time.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { toolArguments } from './arguments.ts'
import { describeWorkingDirectory } from './directory.ts'
import { pathArgument } from './path-argument.ts'
import type { Tool, ToolContext } from './port.ts'
import { runProgram } from './run-program.ts'

const MAX_PATTERN = 2_000
const MAX_FILES = 500
const MAX_LINES = 200
const MAX_BYTES = 16 * 1024
/** The last line of a result, in brackets, is not part of `MAX_BYTES`. */
const SUMMARY_BYTES = 8 * 1024
const SEARCH_SECONDS = 10
/** Time for Python to start and to end. */
const MARGIN_MS = 5_000

const SOURCE = readFileSync(join(import.meta.dirname, 'find.py'), 'utf8')

const text = () =>
  z.string('must be a string').min(1, 'must not be empty').max(MAX_PATTERN, `must be at most ${MAX_PATTERN} characters`)

const ARGUMENTS = toolArguments(
  'find',
  z.object({
    glob: text()
      .optional()
      .describe(
        'File names, such as "*.py", "src/**/*.{ts,tsx}". Without "/" it matches names in every directory, otherwise paths below `path`.',
      ),
    pattern: text()
      .optional()
      .describe(
        'A Python regular expression that matches within a line. (?i) at its beginning ignores case. Without it, files are listed.',
      ),
    path: pathArgument('The directory or file to search. Default: the working directory.').optional(),
  }),
)

const DESCRIPTION = `Finds files by name (glob), or lines in files by a regular expression (pattern); both together search the files that the glob matches. Lines are returned with their numbers below the name of their file. At most ${MAX_FILES} files or ${MAX_LINES} lines are returned. Hidden files and directories are skipped unless glob or path names them; binary files and links are not searched. The last line says what was left out.`

export function createFind(): Tool {
  return {
    definition: { name: 'find', description: DESCRIPTION, parameters: ARGUMENTS.parameters },
    // Searching twice changes nothing.
    keyed: true,
    lane: () => 'shared',
    async run(args, context) {
      const checked = ARGUMENTS.check(args)
      if (!checked.ok) return { output: checked.message }
      return { output: await find(checked.value, context) }
    },
  }
}

interface Arguments {
  readonly glob?: string | undefined
  readonly pattern?: string | undefined
  readonly path?: string | undefined
}

async function find({ glob, pattern, path = '.' }: Arguments, context: ToolContext): Promise<string> {
  const sandbox = await context.sandbox()
  const bytes = Math.min(context.outputBytes, MAX_BYTES)
  const timeoutMs = Math.min(context.remainingMs(), SEARCH_SECONDS * 1_000 + MARGIN_MS)
  const seconds = Math.max(1, Math.min(SEARCH_SECONDS, (timeoutMs - MARGIN_MS) / 1_000))
  const results = pattern === undefined ? MAX_FILES : MAX_LINES
  // JSON escapes NUL and lone surrogates, which an argument of a program can't have.
  const request = JSON.stringify({ path, glob, pattern, results, bytes, seconds })
  const terms = { maxBytes: bytes + SUMMARY_BYTES, timeoutMs, signal: context.signal }
  const made = await runProgram(sandbox, ['python3', '-I', '-S', '-c', SOURCE, request], terms)
  if (made.ok) return made.output.toString('utf8')
  if (made.missing) return 'find did nothing: this sandbox has no python3.'
  const hint = made.stderr.startsWith('There is no') ? ` ${await describeWorkingDirectory(sandbox)}` : ''
  return `find did nothing: ${made.stderr || 'the search failed.'}${hint}`
}
