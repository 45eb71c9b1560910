/** A range of a text's lines below a header with the line numbers, the size and how to read on. */
import { truncateEnd } from './truncate.ts'

export interface LineRange {
  readonly startLine: number
  readonly endLine: number | undefined
}

/** `sizeBytes`: the size of the file. `maxBytes`: the maximum size of the lines, without the header. */
export function linesOf(
  path: string,
  sizeBytes: number,
  file: { readonly text: string; readonly encoding: string },
  range: LineRange,
  maxBytes: number,
): string {
  if (file.text === '') return `[${path}: empty file, 0 bytes]`
  const lines = file.text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const facts = `${sizeBytes} bytes${file.encoding === 'utf-8' ? '' : `, read as ${file.encoding}`}`
  const { startLine } = range
  if (startLine > lines.length) return `[${path} has ${count(lines.length)}: there is no line ${startLine}; ${facts}]`
  const wanted = lines.slice(startLine - 1, range.endLine)
  const given = asManyAsFit(wanted, maxBytes)
  const lastLine = startLine + given.length - 1
  const whole = given.length === lines.length
  const header = whole ? count(lines.length) : `lines ${startLine}-${lastLine} of ${lines.length}`
  const rest = given.length < wanted.length ? `; continue with startLine ${lastLine + 1}` : ''
  const cut = given.length === 1 && given[0] !== wanted[0] ? `; line ${startLine} is longer than shown` : ''
  return `[${path}: ${header}, ${facts}${rest}${cut}]\n${given.join('\n')}`
}

/** Whole lines that fit, or the beginning of the first line if it alone is too long. */
function asManyAsFit(lines: readonly string[], maxBytes: number): string[] {
  const given: string[] = []
  let left = maxBytes
  for (const line of lines) {
    left -= Buffer.byteLength(line) + 1
    if (left < 0) break
    given.push(line)
  }
  return given.length > 0 ? given : [truncateEnd(lines[0]!, maxBytes)]
}

function count(lines: number): string {
  return lines === 1 ? '1 line' : `${lines} lines`
}
