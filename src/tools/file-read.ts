/**
 * `file_read`: a file of the sandbox as a model can use it: text by line ranges, a directory as a list, an image as an
 * image and a PDF as a document where the model can see, anything else described rather than dumped. Reads through the
 * sandbox port alone.
 */
import { z } from 'zod'
import { type Sandbox, SandboxError } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import { describeDirectory, describeWorkingDirectory } from './directory.ts'
import { fileFailure } from './file-failure.ts'
import { fileKind } from './file-kind.ts'
import { presentImage } from './image.ts'
import { pathArgument } from './path-argument.ts'
import { parsePages, presentPdf } from './pdf.ts'
import type { Tool, ToolContext, ToolOutcome } from './port.ts'
import { linesOf } from './text-lines.ts'

const MIB = 1024 * 1024
/** Above it a file is for code, not for reading; but for a PDF, of which pages are read. */
const MAX_READ_BYTES = 16 * MIB

const line = z.int('must be a whole number').min(1, 'must be 1 or more')

const ARGUMENTS = toolArguments(
  'file_read',
  z.object({
    path: pathArgument('Relative to the working directory, or absolute inside the sandbox. A directory is listed.'),
    startLine: line.optional().describe('First line to give, from 1. Default: the first.'),
    endLine: line.optional().describe('Last line to give, inclusive. Default: as many as fit.'),
    pages: z
      .string('must be a string')
      .refine((text) => parsePages(text), 'must be a page or a range of pages, such as "3", "2-5" or "7-"')
      .optional()
      .describe('Of a PDF: the pages to give, such as "3", "2-5" or "7-". Default: all, or as many as fit.'),
  }),
)

type Arguments = Extract<ReturnType<typeof ARGUMENTS.check>, { ok: true }>['value']

const DESCRIPTION = `Reads a file of the sandbox. Text comes with its line range and line count: use startLine and endLine for parts of long files. A directory is listed. Images and PDFs are shown where the model can see them, PDFs else as text; use pages for parts of long ones. Other binary files are described by type and size.
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
        return await present(checked.value, await sandbox.readFile(path, MAX_READ_BYTES), sandbox, context)
      } catch (error) {
        if (error instanceof SandboxError && error.code === 'too_large' && (await isPdf(sandbox, path))) {
          return presentPdf(path, undefined, rangeOf(checked.value), sandbox, context)
        }
        return { output: await explain(error, sandbox, path, context) }
      }
    },
  }
}

async function present(
  args: Arguments,
  bytes: Uint8Array,
  sandbox: Sandbox,
  context: ToolContext,
): Promise<ToolOutcome> {
  const { path, startLine = 1, endLine } = args
  const kind = fileKind(bytes)
  switch (kind.kind) {
    case 'text':
      return { output: linesOf(path, bytes.length, kind, { startLine, endLine }, context.outputBytes) }
    case 'image':
      return presentImage(path, bytes, kind.mimeType, context)
    case 'pdf':
      return presentPdf(path, bytes, rangeOf(args), sandbox, context)
    case 'binary':
      return {
        output: `\`${path}\` is a binary file (${kind.name}, ${bytes.length} bytes) and was not shown. Open it with code_execution.`,
      }
    default:
      return kind satisfies never
  }
}

function rangeOf({ pages }: Arguments) {
  return pages === undefined ? undefined : parsePages(pages)
}

/** By its first bytes. */
async function isPdf(sandbox: Sandbox, path: string): Promise<boolean> {
  for await (const chunk of sandbox.openFile(path, Number.MAX_SAFE_INTEGER)) return fileKind(chunk).kind === 'pdf'
  return false
}

async function explain(error: unknown, sandbox: Sandbox, path: string, context: ToolContext): Promise<string> {
  if (error instanceof SandboxError && error.code === 'not_a_file') {
    const listed = await describeDirectory(sandbox, path, context.outputBytes)
    if (listed !== undefined) return listed
  }
  const told = fileFailure(error, path)
  return error instanceof SandboxError && error.code === 'not_found'
    ? `${told} ${await describeWorkingDirectory(sandbox)}`
    : told
}
