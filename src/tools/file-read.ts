/**
 * The `file_read` tool: text by line ranges with line numbers, directories as lists, images and PDFs as media for models that accept them. Other
 * files are described by type and size.
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
/** Larger files are left to code_execution, except PDFs, of which pages are read. */
const MAX_READ_BYTES = 16 * MIB

const line = z.int('must be a whole number').min(1, 'must be 1 or more')

const ARGUMENTS = toolArguments(
  'file_read',
  z.object({
    path: pathArgument('Relative to the working directory, or absolute inside the sandbox. A directory is listed.'),
    startLine: line.optional().describe('The first line to return, from 1. Default: 1.'),
    endLine: line.optional().describe('The last line to return, inclusive. Default: as many as fit.'),
    pages: z
      .string('must be a string')
      .refine((text) => parsePages(text), 'must be a page or a range of pages, such as "3", "2-5" or "7-"')
      .optional()
      .describe('For a PDF: the pages to return, such as "3", "2-5" or "7-". Default: all, or as many as fit.'),
  }),
)

type Arguments = Extract<ReturnType<typeof ARGUMENTS.check>, { ok: true }>['value']

const DESCRIPTION = `Reads a file of the sandbox. Text is returned by lines: each begins with its number and a tab, which are not part of the file. Use startLine and endLine for parts of long files; the last line says how to read on. A directory is listed. Images and PDFs are shown if you can see them, otherwise a PDF's text is returned; use pages for parts of long PDFs. Other binary files are described by type and size.
To process the data in a file, use code_execution instead of reading it.`

export function createFileRead(): Tool {
  return {
    definition: { name: 'file_read', description: DESCRIPTION, parameters: ARGUMENTS.parameters },
    // Reading twice changes nothing.
    keyed: true,
    lane: () => 'shared',
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
    case 'text': {
      const terms = { maxBytes: context.outputBytes, numbered: true }
      return { output: await linesOf(path, bytes.length, kind, { startLine, endLine }, terms) }
    }
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

/** Decides by the first bytes. */
async function isPdf(sandbox: Sandbox, path: string): Promise<boolean> {
  for await (const chunk of sandbox.openFile(path, Number.MAX_SAFE_INTEGER)) return fileKind(chunk).kind === 'pdf'
  return false
}

async function explain(error: unknown, sandbox: Sandbox, path: string, context: ToolContext): Promise<string> {
  if (error instanceof SandboxError && error.code === 'not_a_file') {
    const listed = await describeDirectory(sandbox, path, context.outputBytes)
    if (listed !== undefined) return listed
  }
  const message = fileFailure(error, path)
  return error instanceof SandboxError && error.code === 'not_found'
    ? `${message} ${await describeWorkingDirectory(sandbox)}`
    : message
}
