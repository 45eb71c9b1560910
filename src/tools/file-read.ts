/**
 * `file_read`: a file of the sandbox as a model can use it: text by line ranges, a directory as a list, an image as an
 * image where the model can see, anything else described rather than dumped. Reads through the sandbox port alone.
 */
import { z } from 'zod'
import { type Sandbox, SandboxError } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import { describeDirectory, whatIsThere } from './directory.ts'
import { fileFailure } from './failure.ts'
import { type FileKind, fileKind } from './file-kind.ts'
import { pathArgument } from './path-argument.ts'
import type { Tool, ToolContext, ToolOutcome } from './port.ts'
import { linesOf } from './text-lines.ts'

const MIB = 1024 * 1024
/** Above it a file is for code, not for reading. */
const MAX_READ_BYTES = 16 * MIB
/** What providers take as one image. */
const MAX_IMAGE_BYTES = 5 * MIB

const line = z.int('must be a whole number').min(1, 'must be 1 or more')

const ARGUMENTS = toolArguments(
  'file_read',
  z.object({
    path: pathArgument('Relative to the working directory, or absolute inside the sandbox. A directory is listed.'),
    startLine: line.optional().describe('First line to give, from 1. Default: the first.'),
    endLine: line.optional().describe('Last line to give, inclusive. Default: as many as fit.'),
  }),
)

const DESCRIPTION = `Reads a file of the sandbox. Text comes with its line range and line count: use startLine and endLine for parts of long files. A directory is listed; images are shown where the model can see them; other binary files are described by type and size.
To compute over a file, use code_execution instead of reading it.`

export function createFileRead(): Tool {
  return {
    definition: { name: 'file_read', description: DESCRIPTION, parameters: ARGUMENTS.parameters },
    // Nothing is changed by reading twice.
    keyed: true,
    async run(args, context) {
      const checked = ARGUMENTS.check(args)
      if (!checked.ok) return { output: checked.message }
      const { path, startLine = 1, endLine } = checked.value
      if (endLine !== undefined && endLine < startLine) {
        return { output: `file_read did nothing: \`endLine\` (${endLine}) is before \`startLine\` (${startLine}).` }
      }
      const sandbox = await context.sandbox()
      try {
        const bytes = await sandbox.readFile(path, MAX_READ_BYTES)
        return present(path, bytes, { startLine, endLine }, context)
      } catch (error) {
        return { output: await explain(error, sandbox, path, context) }
      }
    },
  }
}

function present(
  path: string,
  bytes: Uint8Array,
  range: { readonly startLine: number; readonly endLine: number | undefined },
  context: ToolContext,
): ToolOutcome {
  const kind = fileKind(bytes)
  switch (kind.kind) {
    case 'text':
      return { output: linesOf(path, bytes.length, kind, range, context.outputBytes) }
    case 'image':
      return presentImage(path, bytes, kind, context.vision)
    case 'pdf':
      return {
        output: `\`${path}\` is a PDF (${bytes.length} bytes). Where the sandbox has pdftotext, get its text by code_execution: pdftotext -layout FILE - (language bash).`,
      }
    case 'binary':
      return {
        output: `\`${path}\` is a binary file (${kind.name}, ${bytes.length} bytes) and was not shown. Open it with code_execution.`,
      }
    default:
      return kind satisfies never
  }
}

function presentImage(
  path: string,
  bytes: Uint8Array,
  { mimeType }: Extract<FileKind, { kind: 'image' }>,
  vision: boolean,
): ToolOutcome {
  const what = `\`${path}\` is an image (${mimeType}, ${bytes.length} bytes)`
  if (!vision) return { output: `${what}. This model can't be shown images; work on it with code_execution.` }
  if (bytes.length > MAX_IMAGE_BYTES) {
    return { output: `${what}, more than the ${MAX_IMAGE_BYTES} bytes that can be shown. Make it smaller first.` }
  }
  return {
    output: `${what}; it is shown here.`,
    media: [{ type: 'image', mimeType, base64: Buffer.from(bytes).toString('base64') }],
  }
}

async function explain(error: unknown, sandbox: Sandbox, path: string, context: ToolContext): Promise<string> {
  if (error instanceof SandboxError && error.code === 'not_a_file') {
    const listed = await describeDirectory(sandbox, path, context.outputBytes)
    if (listed !== undefined) return listed
  }
  const told = fileFailure(error, path)
  return error instanceof SandboxError && error.code === 'not_found' ? `${told} ${await whatIsThere(sandbox)}` : told
}
