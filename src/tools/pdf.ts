/**
 * PDFs for the model: the whole document if the model accepts documents, else page images if it accepts images, else the
 * text. A page range is always images or text. Pages are rendered by poppler inside the sandbox, never in this process.
 */
import type { MediaPart } from '../domain/message.ts'
import type { Sandbox } from '../sandbox/port.ts'
import { imagePart, MAX_IMAGE_BYTES, SHOWN_SIDE, sandboxPath } from './image.ts'
import type { ToolContext, ToolOutcome } from './port.ts'
import { type ProgramEnd, runProgram } from './run-program.ts'
import { truncateEnd } from './truncate.ts'

const MIB = 1024 * 1024
/** Providers accept at least 32 MB a request and 100 pages. The rest of the request is for the conversation. */
const MAX_DOCUMENT_BYTES = 8 * MIB
const MAX_DOCUMENT_PAGES = 100
const IMAGES_AT_ONCE = 10
const MAX_TEXT_BYTES = 8 * MIB
const PROGRAM_MS = 60_000

export interface PageRange {
  readonly first: number
  readonly last: number | undefined
}

/** Parses `3`, `2-5` or `7-`. Returns undefined for anything else. */
export function parsePages(text: string): PageRange | undefined {
  const found = /^(\d{1,6}) ?(- ?(\d{1,6})?)?$/.exec(text.trim())
  if (!found) return undefined
  const first = Number(found[1])
  const last = found[2] === undefined ? first : found[3] === undefined ? undefined : Number(found[3])
  return first >= 1 && (last ?? first) >= first ? { first, last } : undefined
}

interface Pdf {
  readonly path: string
  readonly run: (...argv: string[]) => Promise<ProgramEnd>
  /** Undefined if the number of pages is unknown. */
  readonly pages: number | undefined
  readonly context: ToolContext
}

/** `bytes`: undefined if the file is too large to be read. */
export async function presentPdf(
  path: string,
  bytes: Uint8Array | undefined,
  range: PageRange | undefined,
  sandbox: Sandbox,
  context: ToolContext,
): Promise<ToolOutcome> {
  const run = (...argv: string[]) => {
    const timeoutMs = Math.min(context.remainingMs(), PROGRAM_MS)
    return runProgram(sandbox, argv, { maxBytes: MAX_TEXT_BYTES, timeoutMs, signal: context.signal })
  }
  const info = await run('pdfinfo', sandboxPath(path))
  if (!info.ok && !info.missing) return { output: `\`${path}\` is a PDF that can't be read. ${info.stderr}` }
  const facts = info.ok ? info.output.toString('utf8') : ''
  const pages = /^Pages:\s+(\d+)/m.exec(facts)?.[1]
  const pdf: Pdf = { path, run, pages: pages === undefined ? undefined : Number(pages), context }
  if (range && pdf.pages !== undefined && range.first > pdf.pages) {
    return { output: `\`${path}\` has ${count(pdf.pages)}: there is no page ${range.first}.` }
  }
  const encrypted = info.ok ? /^Encrypted:\s+yes/m.test(facts) : bytes && Buffer.from(bytes).includes('/Encrypt')
  if (context.documents && !range && bytes && !encrypted && fits(bytes, pdf.pages)) return whole(pdf, bytes)
  if (!info.ok) return { output: missingPoppler(path, context.documents) }
  return (context.vision && (await asImages(pdf, range))) || (await asText(pdf, range))
}

function fits(bytes: Uint8Array, pages = 0): boolean {
  return bytes.length <= MAX_DOCUMENT_BYTES && pages <= MAX_DOCUMENT_PAGES
}

function whole({ path, pages }: Pdf, bytes: Uint8Array): ToolOutcome {
  const base64 = Buffer.from(bytes).toString('base64')
  const name = path.split('/').at(-1) || 'document.pdf'
  const size = pages === undefined ? `${bytes.length} bytes` : `${count(pages)}, ${bytes.length} bytes`
  const media: MediaPart[] = [{ type: 'document', mimeType: 'application/pdf', base64, name }]
  return { output: `\`${path}\` is a PDF (${size}); it is shown here.`, media }
}

/** Returns undefined if no page could be rendered. */
async function asImages(pdf: Pdf, range: PageRange | undefined): Promise<ToolOutcome | undefined> {
  const { path, run, pages = 1 } = pdf
  const { first, last } = bounds(range, pages)
  const until = Math.min(last, first + IMAGES_AT_ONCE - 1)
  const media: MediaPart[] = []
  let left = MAX_DOCUMENT_BYTES
  for (let page = first; page <= until; page++) {
    const made = await run(
      ...['pdftoppm', '-jpeg', '-jpegopt', 'quality=85', '-scale-to', `${SHOWN_SIDE}`],
      ...['-f', `${page}`, '-l', `${page}`, sandboxPath(path)],
    )
    left -= made.ok ? made.output.length : 0
    if (!made.ok || made.output.length === 0 || made.output.length > MAX_IMAGE_BYTES || left < 0) break
    media.push(imagePart('image/jpeg', made.output))
  }
  if (media.length === 0) return undefined
  const shownTo = first + media.length - 1
  const rest = shownTo < last ? ` Continue with pages "${shownTo + 1}-${last}".` : ''
  return { output: `\`${path}\` is a PDF (${count(pages)}); ${pagesFrom(first, shownTo)} shown here.${rest}`, media }
}

async function asText(pdf: Pdf, range: PageRange | undefined): Promise<ToolOutcome> {
  const { path, run, pages = 1, context } = pdf
  const { first, last } = bounds(range, pages)
  const made = await run('pdftotext', '-layout', '-f', `${first}`, '-l', `${last}`, sandboxPath(path), '-')
  if (!made.ok)
    return { output: `The text of \`${path}\`, a PDF (${count(pages)}), could not be extracted. ${made.stderr}` }
  const texts = made.output
    .toString('utf8')
    .split('\f')
    .slice(0, last - first + 1)
  if (texts.every((text) => text.trim() === '')) {
    return {
      output: `\`${path}\` is a PDF (${count(pages)}) without text, probably scanned, and this model can't be shown images.`,
    }
  }
  const given: string[] = []
  let left = context.outputBytes
  for (const [i, text] of texts.entries()) {
    const page = `--- page ${first + i} ---\n${text.trimEnd()}\n`
    left -= Buffer.byteLength(page)
    if (left < 0 && given.length > 0) break
    given.push(left < 0 ? truncateEnd(page, context.outputBytes) : page)
    if (left < 0) break
  }
  const shownTo = first + given.length - 1
  const rest = shownTo < last ? `; continue with pages "${shownTo + 1}-${last}"` : ''
  const cut = left < 0 && given.length === 1 ? `; page ${first} is longer than shown` : ''
  return {
    output: `[${path}: PDF, ${count(pages)}; the text of ${pagesOf(first, shownTo)}${rest}${cut}]\n${given.join('')}`,
  }
}

function bounds(range: PageRange | undefined, pages: number): { first: number; last: number } {
  return { first: range?.first ?? 1, last: Math.min(range?.last ?? pages, pages) }
}

function missingPoppler(path: string, documents: boolean): string {
  const why = documents
    ? 'is a PDF that can only be shown page by page'
    : 'is a PDF, and this model does not accept whole PDFs'
  return `\`${path}\` ${why}, and this sandbox lacks poppler-utils (pdfinfo, pdftoppm, pdftotext), which would make images or text of its pages. Check with code_execution whether a Python package can read it.`
}

function count(pages: number): string {
  return pages === 1 ? '1 page' : `${pages} pages`
}

function pagesOf(first: number, last: number): string {
  return first === last ? `page ${first}` : `pages ${first}-${last}`
}

function pagesFrom(first: number, last: number): string {
  return `${pagesOf(first, last)} ${first === last ? 'is' : 'are'}`
}
