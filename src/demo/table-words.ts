/** The words of a question: which of them name columns, values and groups of a table. */
import type { Column, DatePart, Group, Operation, Profile } from './task.ts'
import { type Token, tokensOf } from './words.ts'

export interface Reading {
  readonly profile: Profile
  readonly tokens: readonly Token[]
  /** The words of each column's name. */
  readonly columns: readonly { readonly column: Column; readonly words: readonly string[] }[]
  /** Tokens that were understood. */
  readonly used: boolean[]
}

export function startReading(text: string, profile: Profile): Reading {
  const tokens = tokensOf(text)
  const columns = profile.columns.map((column) => ({ column, words: tokensOf(column.name).map(({ word }) => word) }))
  return { profile, tokens, columns, used: tokens.map(() => false) }
}

export function wordAt(reading: Reading, at: number): string {
  return reading.tokens[at]?.word ?? ''
}

export function use(reading: Reading, from: number, to: number): void {
  reading.used.fill(true, from, to)
}

/** Words for operations, as words.ts normalizes them. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  average: 'mean',
  sum: 'sum',
  total: 'sum',
  median: 'median',
  count: 'count',
  min: 'min',
  lowest: 'min',
  smallest: 'min',
  max: 'max',
  highest: 'max',
  largest: 'max',
  biggest: 'max',
}

const DATE_PARTS: Readonly<Record<string, DatePart>> = {
  year: 'year',
  month: 'month',
  weekday: 'weekday',
  day: 'day',
  date: 'day',
  hour: 'hour',
}

/** Words that say nothing about what to compute. */
const FILLERS = new Set(
  `a an the of in on at to for from with and or by per each every is was are be were do does did has have had what
  which how many much there it its this that these me my i you we please tell show give find compute calculate get all
  any file column request value number data table csv row record line entry where when too also then as can could would will
  plot chart graph draw visualize visualise over time type kind day month year date common most frequent result`.split(
    /\s+/,
  ),
)

export function isPlain({ raw, word }: Token): boolean {
  return FILLERS.has(word) || FILLERS.has(raw.toLowerCase())
}

/** Index of the first token of a cell's value. Undefined if the question does not name it. */
export function findValue(reading: Reading, value: string): number | undefined {
  const words = tokensOf(value).map(({ raw }) => raw.toLowerCase())
  const at = reading.tokens.findIndex((_, from) =>
    words.every((word, i) => !reading.used[from + i] && sameValue(reading.tokens[from + i]?.raw ?? '', word)),
  )
  return words.length === 0 || at === -1 ? undefined : at
}

/** Also `rainy` for `rain` and `foggy` for `fog`. */
function sameValue(said: string, value: string): boolean {
  const word = said.toLowerCase()
  return word === value || (value.length >= 3 && ['y', 's', `${value.at(-1)}y`].some((end) => word === value + end))
}

/** A group that begins at a word: a column, or a part of the date. */
export function groupAt(reading: Reading, at: number): { readonly group: Group; readonly length: number } | undefined {
  if (reading.used[at] || at >= reading.tokens.length) return undefined
  const whole = wholeColumnAt(reading, at)
  if (whole && whole.column.type !== 'date') return { group: { column: whole.column.name }, length: whole.length }
  const date = reading.profile.columns.find(({ type }) => type === 'date')
  const part = DATE_PARTS[wordAt(reading, at)]
  if (date && part) return { group: { column: date.name, part }, length: 1 }
  const [named, other] = columnsNamed(reading, at)
  return named && !other && named.type !== 'date' ? { group: { column: named.name }, length: 1 } : undefined
}

/** The column whose words are the next tokens, in any order. */
export function wholeColumnAt(
  reading: Reading,
  at: number,
): { readonly column: Column; readonly length: number } | undefined {
  const found = reading.columns.filter(({ words }) => {
    const window = reading.tokens.slice(at, at + words.length).map(({ word }) => word)
    return words.length > 0 && [...window].sort().join(' ') === [...words].sort().join(' ')
  })
  const longest = found.sort((a, b) => b.words.length - a.words.length)[0]
  return longest && { column: longest.column, length: longest.words.length }
}

/** Columns whose name has the word at a place. */
export function columnsNamed(reading: Reading, at: number): Column[] {
  const word = wordAt(reading, at)
  if (word in OPERATIONS) return []
  return reading.columns.filter(({ words }) => words.includes(word)).map(({ column }) => column)
}

/** Marks the column's name as understood wherever it stands. */
export function useName(reading: Reading, column: Column): void {
  reading.tokens.forEach((_, at) => {
    const whole = reading.used[at] ? undefined : wholeColumnAt(reading, at)
    if (whole?.column === column) use(reading, at, at + whole.length)
  })
}
