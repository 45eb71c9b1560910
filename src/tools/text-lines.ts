/** A range of a text's lines below a header with the range and the size. The last line says how to read on. */
import { truncateEnd } from './truncate.ts'

export interface LineRange {
  readonly startLine: number
  readonly endLine: number | undefined
}

/**
 * `sizeBytes`: the size of the file. `maxBytes`: the maximum size of the lines, without header and last line. `numbered`: each
 * line begins with its number and a tab.
 */
export function linesOf(
  path: string,
  sizeBytes: number,
  file: { readonly text: string; readonly encoding: string },
  range: LineRange,
  { maxBytes, numbered = false }: { readonly maxBytes: number; readonly numbered?: boolean },
): string {
  if (file.text === '') return `[${path}: empty file, 0 bytes]`
  const lines = file.text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const facts = `${sizeBytes} bytes${file.encoding === 'utf-8' ? '' : `, read as ${file.encoding}`}`
  const { startLine } = range
  if (startLine > lines.length) return `[${path} has ${count(lines.length)}: there is no line ${startLine}; ${facts}]`
  const wanted = lines.slice(startLine - 1, range.endLine)
  const shown = numbered ? (line: string, i: number) => `${startLine + i}\t${line}` : (line: string) => line
  const { given, cut } = asManyAsFit(wanted, shown, maxBytes)
  const lastLine = startLine + given.length - 1
  const whole = given.length === lines.length
  const header = whole ? count(lines.length) : `lines ${startLine}-${lastLine} of ${lines.length}`
  const notes = [
    ...(cut ? [`line ${startLine} is longer than shown`] : []),
    ...(given.length < wanted.length
      ? [`${lines.length - lastLine} more; continue with startLine ${lastLine + 1}`]
      : []),
  ]
  return [`[${path}: ${header}, ${facts}]`, ...given, ...(notes.length > 0 ? [`[${notes.join('; ')}]`] : [])].join('\n')
}

/** Whole lines that fit, or the beginning of the first line if it alone is too long. */
function asManyAsFit(lines: readonly string[], shown: (line: string, i: number) => string, maxBytes: number) {
  const given: string[] = []
  let left = maxBytes
  for (const [i, line] of lines.entries()) {
    const text = shown(line, i)
    left -= Buffer.byteLength(text) + 1
    if (left < 0) break
    given.push(text)
  }
  if (given.length > 0) return { given, cut: false }
  return { given: [truncateEnd(shown(lines[0]!, 0), maxBytes)], cut: true }
}

function count(lines: number): string {
  return lines === 1 ? '1 line' : `${lines} lines`
}
