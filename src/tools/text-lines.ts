/** A range of a text's lines below a header with the range and the size. The last line says how to read on. */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { truncateEnd } from './truncate.ts'

/** Lines that are passed before other work may run. */
const LINES_AT_ONCE = 50_000

export interface LineRange {
  readonly startLine: number
  readonly endLine: number | undefined
}

export interface LineTerms {
  /** Maximum size of the lines, without header and last line. */
  readonly maxBytes: number
  /** Each line begins with its number and a tab. */
  readonly numbered?: boolean
}

/** `sizeBytes`: the size of the file. Linear; yields to the event loop. */
export async function linesOf(
  path: string,
  sizeBytes: number,
  file: { readonly text: string; readonly encoding: string },
  range: LineRange,
  terms: LineTerms,
): Promise<string> {
  if (file.text === '') return `[${path}: empty file, 0 bytes]`
  const { startLine, endLine = Number.POSITIVE_INFINITY } = range
  const { given, total, cut } = await asManyAsFit(file.text, startLine, endLine, terms)
  const facts = `${sizeBytes} bytes${file.encoding === 'utf-8' ? '' : `, read as ${file.encoding}`}`
  if (startLine > total) return `[${path} has ${count(total)}: there is no line ${startLine}; ${facts}]`
  const lastLine = startLine + given.length - 1
  const header = given.length === total ? count(total) : `lines ${startLine}-${lastLine} of ${total}`
  const notes = [
    ...(cut ? [`line ${startLine} is longer than shown`] : []),
    ...(lastLine < Math.min(endLine, total)
      ? [`${total - lastLine} more; continue with startLine ${lastLine + 1}`]
      : []),
  ]
  return [`[${path}: ${header}, ${facts}]`, ...given, ...(notes.length > 0 ? [`[${notes.join('; ')}]`] : [])].join('\n')
}

/** Whole lines of the range that fit, or the beginning of the first line if it alone is too long; and the number of all lines. */
async function asManyAsFit(
  text: string,
  startLine: number,
  endLine: number,
  { maxBytes, numbered = false }: LineTerms,
) {
  const given: string[] = []
  let left = maxBytes
  let cut = false
  let total = 0
  for (let at = 0; at < text.length; ) {
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    total++
    if (total >= startLine && total <= endLine && left > 0) {
      // One character more than can fit shows that the line is too long.
      const line = text.slice(at, Math.min(end, at + maxBytes + 1))
      const shown = numbered ? `${total}\t${line}` : line
      const size = Buffer.byteLength(shown)
      left -= size + 1
      if (given.length === 0) cut = size > maxBytes
      if (left >= 0 || given.length === 0) given.push(truncateEnd(shown, maxBytes))
    }
    at = end + 1
    if (total % LINES_AT_ONCE === 0) await yieldToOthers()
  }
  return { given, total, cut }
}

function count(lines: number): string {
  return lines === 1 ? '1 line' : `${lines} lines`
}
