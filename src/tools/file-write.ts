/**
 * The `file_write` tool: writes a file of the sandbox, appends to it, or replaces pieces of text in it. Replacements are made
 * all or none: each text to replace must occur exactly once, or as often as wanted with `all`.
 */
import { z } from 'zod'
import type { Sandbox } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import { fileFailure } from './file-failure.ts'
import { pathArgument } from './path-argument.ts'
import type { Tool } from './port.ts'
import { type Edit, replaceTexts } from './replace.ts'

const MIB = 1024 * 1024
/** Maximum characters in one call. */
const MAX_CONTENT = 8 * MIB
/** Larger files and changes are left to code_execution. */
const MAX_REPLACE_BYTES = 16 * MIB
const MAX_REPLACE_CONTENT = MIB
const MAX_FIND = 64 * 1024
const MAX_EDITS = 100

const MODES = ['write', 'append', 'replace'] as const

const find = z
  .string('must be a string')
  .min(1, 'must not be empty')
  .max(MAX_FIND, `must be at most ${MAX_FIND} characters; a shorter piece is enough if it occurs once`)

const EDIT = z.object(
  {
    find: find.describe(
      'The exact text to replace, without line numbers. It must occur exactly once unless `all` is true.',
    ),
    replace: z.string('must be a string').describe('The new text.'),
    all: z.boolean('must be true or false').optional().describe('Replaces every occurrence. Default: false.'),
  },
  'must be an object with `find` and `replace`',
)

const ARGUMENTS = toolArguments(
  'file_write',
  z.object({
    path: pathArgument(
      'Relative to the working directory. Missing directories are created. Files under outputs/ are returned to the caller.',
    ),
    content: z
      .string('must be a string')
      .max(MAX_CONTENT, `must be at most ${MAX_CONTENT} characters; write it in parts with mode "append"`)
      .optional()
      .describe('The text to write. With mode replace: the text that replaces `find`. Leave it out with `edits`.'),
    mode: z
      .enum(MODES, `must be one of ${MODES.map((mode) => `"${mode}"`).join(', ')}`)
      .optional()
      .describe(
        'write (default): creates or overwrites the file. append: adds to its end. replace: replaces `find` with `content`.',
      ),
    find: find
      .optional()
      .describe('Only with mode replace: the exact text to replace. It must occur exactly once in the file.'),
    edits: z
      .array(EDIT, 'must be a list')
      .min(1, 'must not be empty')
      .max(MAX_EDITS, `must have at most ${MAX_EDITS} edits`)
      .optional()
      .describe('Replacements in an existing file, all made or none. Each `find` refers to the file before the call.'),
  }),
)

type Arguments = Extract<ReturnType<typeof ARGUMENTS.check>, { ok: true }>['value']

const DESCRIPTION = `Writes a text file in the sandbox: the whole file (mode write), at its end (append), or pieces of text in it (edits; mode replace for a single one). Prefer edits to rewriting a long file. If a text to replace is not found, nothing is written and the nearest text is shown. Files under outputs/ are returned to the caller when the run ends; all others are discarded.`

export function createFileWrite(): Tool {
  return {
    definition: { name: 'file_write', description: DESCRIPTION, parameters: ARGUMENTS.parameters },
    // An append or a replacement must not be repeated after a crash, and the sandbox has no keys for file writes.
    keyed: false,
    async run(args, context) {
      const checked = ARGUMENTS.check(args)
      if (!checked.ok) return { output: checked.message }
      const problem = contradiction(checked.value)
      if (problem) return { output: `file_write did nothing: ${problem}` }
      const sandbox = await context.sandbox()
      try {
        return { output: await write(sandbox, checked.value) }
      } catch (error) {
        return { output: fileFailure(error, checked.value.path) }
      }
    },
  }
}

function contradiction({ mode = 'write', find, content, edits }: Arguments): string | undefined {
  if (edits !== undefined) {
    // Ignoring `content` would lose a text that the model meant to write.
    if (content !== undefined || find !== undefined)
      return "`edits` can't be combined with `content` or `find`: each edit has its own `find` and `replace`."
    if (mode === 'append') return '`edits` can\'t be combined with mode "append".'
    return tooLong(
      '`replace` of all edits together',
      edits.reduce((sum, { replace }) => sum + replace.length, 0),
    )
  }
  if (content === undefined) return '`content` is missing. To replace pieces of text, use `edits`.'
  if (mode === 'replace' && find === undefined) return 'mode "replace" needs `find`, the exact text to replace.'
  // Ignoring `find` would overwrite a file in which the model meant to replace one piece of text.
  if (mode !== 'replace' && find !== undefined)
    return `\`find\` is only allowed with mode "replace", and mode is "${mode}".`
  return mode === 'replace' ? tooLong('`content` with mode "replace"', content.length) : undefined
}

function tooLong(what: string, characters: number): string | undefined {
  if (characters <= MAX_REPLACE_CONTENT) return undefined
  return `${what} must be at most ${MAX_REPLACE_CONTENT} characters. Make a larger change with code_execution.`
}

async function write(
  sandbox: Sandbox,
  { path, content = '', mode = 'write', find, edits }: Arguments,
): Promise<string> {
  if (edits !== undefined) return replace(sandbox, path, edits)
  if (mode === 'replace') return replace(sandbox, path, [{ find: find!, replace: content }])
  const bytes = Buffer.from(content, 'utf8')
  await sandbox.writeFile(path, bytes, mode)
  const done = mode === 'append' ? `Appended ${bytes.length} bytes to` : `Wrote ${bytes.length} bytes to`
  return `${done} \`${path}\`.${returned(path)}`
}

async function replace(sandbox: Sandbox, path: string, edits: readonly Edit[]): Promise<string> {
  const before = await sandbox.readFile(path, MAX_REPLACE_BYTES)
  const replaced = await replaceTexts(Buffer.from(before.buffer, before.byteOffset, before.length), edits)
  if (!replaced.ok) {
    const reasons = replaced.problems.map(({ edit, why }) => (edits.length === 1 ? why : `edits[${edit}]: ${why}`))
    return `Nothing was replaced in \`${path}\`: ${reasons.join('\n')}`
  }
  const { bytes, places, at, note } = replaced
  await sandbox.writeFile(path, bytes, 'write')
  const what = places === 1 ? 'the text' : `${places} texts`
  return `Replaced ${what} ${at} of \`${path}\`, which now has ${bytes.length} bytes.${note}${returned(path)}`
}

function returned(path: string): string {
  return /^(\.\/|\/workspace\/)?outputs\/./.test(path) ? ' It will be returned to the caller.' : ''
}
