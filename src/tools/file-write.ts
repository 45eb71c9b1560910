/**
 * The `file_write` tool: writes a file of the sandbox, appends to it, or replaces one piece of text in it. The text to replace
 * must occur exactly once, or nothing is written.
 */
import { Readable } from 'node:stream'
import { z } from 'zod'
import type { Sandbox } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import { fileFailure } from './file-failure.ts'
import { pathArgument } from './path-argument.ts'
import type { Tool } from './port.ts'
import { replaceOnce } from './replace.ts'

const MIB = 1024 * 1024
/** Maximum characters in one call. */
const MAX_CONTENT = 8 * MIB
/** Larger files and changes are left to code_execution. */
const MAX_REPLACE_BYTES = 16 * MIB
const MAX_REPLACE_CONTENT = MIB
const MAX_FIND = 64 * 1024

const MODES = ['write', 'append', 'replace'] as const

const ARGUMENTS = toolArguments(
  'file_write',
  z.object({
    path: pathArgument(
      'Relative to the working directory. Missing directories are created. Files under outputs/ are returned to the caller.',
    ),
    content: z
      .string('must be a string')
      .max(MAX_CONTENT, `must be at most ${MAX_CONTENT} characters; write it in parts with mode "append"`)
      .describe('The text to write. With mode replace: the text that replaces `find`.'),
    mode: z
      .enum(MODES, `must be one of ${MODES.map((mode) => `"${mode}"`).join(', ')}`)
      .optional()
      .describe(
        'write (default): creates or overwrites the file. append: adds to its end. replace: replaces `find` with `content`.',
      ),
    find: z
      .string('must be a string')
      .min(1, 'must not be empty')
      .max(MAX_FIND, `must be at most ${MAX_FIND} characters; a shorter piece is enough if it occurs once`)
      .optional()
      .describe('Only with mode replace: the exact text to replace. It must occur exactly once in the file.'),
  }),
)

type Arguments = Extract<ReturnType<typeof ARGUMENTS.check>, { ok: true }>['value']

const DESCRIPTION = `Writes a text file in the sandbox: the whole file (mode write), at its end (append), or one piece of text in it (replace). Files under outputs/ are returned to the caller when the run ends; all others are discarded.`

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

function contradiction({ mode = 'write', find, content }: Arguments): string | undefined {
  if (mode === 'replace' && content.length > MAX_REPLACE_CONTENT)
    return `\`content\` must be at most ${MAX_REPLACE_CONTENT} characters with mode "replace". Make a larger change with code_execution.`
  if (mode === 'replace' && find === undefined) return 'mode "replace" needs `find`, the exact text to replace.'
  // Ignoring `find` would overwrite a file in which the model meant to replace one piece of text.
  if (mode !== 'replace' && find !== undefined)
    return `\`find\` is only allowed with mode "replace", and mode is "${mode}".`
  return undefined
}

async function write(sandbox: Sandbox, args: Arguments): Promise<string> {
  const { path, content, mode = 'write', find } = args
  if (mode === 'replace') return replace(sandbox, path, find!, content)
  const bytes = Buffer.from(content, 'utf8')
  await sandbox.writeFile(path, bytes, mode)
  const done = mode === 'append' ? `Appended ${bytes.length} bytes to` : `Wrote ${bytes.length} bytes to`
  return `${done} \`${path}\`.${returned(path)}`
}

async function replace(sandbox: Sandbox, path: string, find: string, content: string): Promise<string> {
  const before = await sandbox.readFile(path, MAX_REPLACE_BYTES)
  const replaced = await replaceOnce(Buffer.from(before.buffer, before.byteOffset, before.length), find, content)
  if (!replaced.ok) return `Nothing was replaced in \`${path}\`: ${replaced.why}`
  const { parts, line, note } = replaced
  await sandbox.writeFile(path, Readable.from(parts), 'write')
  const size = parts.reduce((sum, { length }) => sum + length, 0)
  return `Replaced the text at line ${line} of \`${path}\`, which now has ${size} bytes.${note}${returned(path)}`
}

function returned(path: string): string {
  return /^(\.\/|\/workspace\/)?outputs\/./.test(path) ? ' It will be returned to the caller.' : ''
}
