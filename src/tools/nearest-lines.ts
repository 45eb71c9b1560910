/**
 * Finds the lines of a file that are most like a text that does not occur in it, and shows how they differ. Linear in the file:
 * each line is compared by its words with the few lines of the text that have these words.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises'

/** Maximum characters of the file that are compared. */
const MAX_TEXT = 1024 * 1024
const MAX_FIND_LINES = 200
/** Maximum characters of a line, and words in it. */
const MAX_LINE = 400
const MAX_WORDS = 100
/** A word that more lines of the text have does not lead to a comparison. */
const MAX_LINES_OF_WORD = 8
/** Maximum lines of the text that are compared with one line of the file. */
const MAX_COMPARED = 16
const MAX_STARTS = 50_000
/** Characters before other work may run. */
const SLICE = 50_000
/** Minimum share of the words that two lines, and the whole texts, have in common. */
const LIKE = 0.5
const NEAR = 0.3
const MAX_SHOWN = 3
const SHOWN_CHARS = 160

/** Returns undefined if nothing in `file` is like `find`. */
export async function describeNearest(file: string, find: string): Promise<string | undefined> {
  const text = file.slice(0, MAX_TEXT)
  const wanted = find.split('\n', MAX_FIND_LINES).map((line) => line.slice(0, MAX_LINE))
  const first = await nearest(text, wanted)
  if (first === undefined) return undefined
  const there: string[] = []
  await eachLine(text, (line, number) => {
    if (number >= first && there.length < wanted.length) there.push(line.endsWith('\r') ? line.slice(0, -1) : line)
  })
  const rows = wanted.flatMap((line, i) =>
    same(there[i], line, i, wanted.length) ? [] : [differing(first + i, there[i], line)],
  )
  const more = rows.length > MAX_SHOWN ? [`and ${rows.length - MAX_SHOWN} more lines differ.`] : []
  return [`The nearest text begins at line ${first}.`, ...rows.slice(0, MAX_SHOWN), ...more].join('\n')
}

/** The line at which the nearest text begins, from 1: the start that most words of most lines agree on. */
async function nearest(text: string, wanted: readonly string[]): Promise<number | undefined> {
  const lines = wanted.map(wordsOf)
  const sets = lines.map((words) => new Set(words))
  const linesWith = indexOf(sets)
  const weights = lines.map(({ length }) => length)
  const scores = new Map<number, number>()
  await eachLine(text, (line, number) => {
    const own = wordsOf(line)
    const compared = new Set<number>()
    for (const word of own) for (const i of linesWith.get(word) ?? []) if (compared.size < MAX_COMPARED) compared.add(i)
    for (const i of compared) {
      const shared = own.filter((word) => sets[i]!.has(word)).length
      const likeness = (2 * Math.min(shared, weights[i]!)) / (own.length + weights[i]!)
      const start = number - i
      if (likeness < LIKE || start < 1 || (scores.size >= MAX_STARTS && !scores.has(start))) continue
      scores.set(start, (scores.get(start) ?? 0) + likeness * weights[i]!)
    }
  })
  let best: number | undefined
  for (const [start, score] of scores) if (score > (scores.get(best ?? 0) ?? 0)) best = start
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  return best !== undefined && scores.get(best)! >= NEAR * all ? best : undefined
}

function wordsOf(line: string): readonly string[] {
  return (line.match(/\w+|[^\w\s]/g) ?? []).slice(0, MAX_WORDS)
}

/** The numbers of the lines that have a word, except for words that many lines have. */
function indexOf(lines: readonly ReadonlySet<string>[]): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>()
  for (const [i, words] of lines.entries()) {
    for (const word of words) {
      const list = found.get(word)
      if (list === undefined) found.set(word, [i])
      else if (list.length <= MAX_LINES_OF_WORD) list.push(i)
    }
  }
  for (const [word, list] of found) if (list.length > MAX_LINES_OF_WORD) found.delete(word)
  return found
}

/** Calls `visit` with the beginning of each line. Yields to the event loop. */
async function eachLine(text: string, visit: (line: string, number: number) => void): Promise<void> {
  let work = 0
  for (let at = 0, number = 1; at <= text.length; number++) {
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    visit(text.slice(at, Math.min(end, at + MAX_LINE)), number)
    work += Math.min(end - at, MAX_LINE) + 50
    at = end + 1
    if (work < SLICE) continue
    work = 0
    await yieldToOthers()
  }
}

/** The first and the last line of the text may be a part of the file's line. */
function same(there: string | undefined, wanted: string, i: number, lines: number): boolean {
  if (there === undefined) return false
  if (lines === 1) return there.includes(wanted)
  if (i === 0) return there.endsWith(wanted)
  return i === lines - 1 ? there.startsWith(wanted) : there === wanted
}

/** JSON shows blanks and tabs. */
function differing(number: number, there: string | undefined, wanted: string): string {
  let same = 0
  while (there !== undefined && same < there.length && there[same] === wanted[same]) same++
  const from = Math.max(0, same - SHOWN_CHARS / 2)
  const part = (text: string) => JSON.stringify(text.slice(from, from + SHOWN_CHARS))
  return `line ${number}: ${there === undefined ? 'the file ends' : part(there)}\n   find: ${part(wanted)}`
}
