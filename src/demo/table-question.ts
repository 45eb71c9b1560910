/**
 * A question about a table → what to compute: one operation over one column, by one group, for rows with certain values.
 * A question with more than that is refused, and words that were not understood are listed in the answer.
 */
import { listed } from './numbers.ts'
import {
  columnsNamed,
  findValue,
  groupAt,
  isPlain,
  OPERATIONS,
  type Reading,
  startReading,
  use,
  useName,
  wholeColumnAt,
  wordAt,
} from './table-words.ts'
import type { Column, Filter, Group, Operation, Profile, TableQuery } from './task.ts'
import { tokensOf } from './words.ts'

export type Understood =
  | { readonly ok: true; readonly query: TableQuery }
  | { readonly ok: false; readonly problem: string }

/** Words that would change the result in a way that is not supported. */
const UNSUPPORTED = new Set(
  `not no except excluding without than between before after since until different distinct unique percent percentage
  share proportion correlation histogram distribution deviation std variance trend sort sorted`.split(/\s+/),
)

const HIGH = /^(highest|largest|biggest|most|max)$/
const LOW = /^(lowest|smallest|least|fewest|min)$/

interface Ranking {
  readonly group: Group
  readonly rank: NonNullable<TableQuery['rank']>
  /** Whether amounts are compared (`most`, `top`), rather than extremes (`highest`). */
  readonly amount: boolean
}

class NotUnderstood extends Error {}

export function readTableQuestion(text: string, profile: Profile): Understood {
  try {
    return { ok: true, query: readQuery(text, profile) }
  } catch (error) {
    if (!(error instanceof NotUnderstood)) throw error
    return { ok: false, problem: `${error.message} ${columnsOf(profile)}` }
  }
}

function readQuery(text: string, profile: Profile): TableQuery {
  const reading = startReading(text, profile)
  const unsupported = reading.tokens.find(({ raw }) => UNSUPPORTED.has(raw.toLowerCase()))
  if (unsupported) throw new NotUnderstood(`I don't understand "${unsupported.raw}" in a question about a table.`)
  const chart = /\b(plot|chart|graph|draw|visuali[sz]e)\b/i.test(text)
  const notes: string[] = []
  const by = readBy(reading)
  const ranking = readRanking(reading, by?.group)
  const filters = readFilters(reading)
  const measure = readMeasure(reading, by?.measured, ranking, chart || by?.group !== undefined, notes)
  let group = ranking?.group ?? by?.group
  if (chart && !group) {
    group = monthOf(profile)
    notes.push(`No grouping was named, so the chart is by month of ${group.column}.`)
  }
  notes.push(...leftovers(reading))
  return { ...measure, group, filters, rank: ranking?.rank, chart, notes }
}

/** `by month`, `per city`. After `top 5 …`, a column of numbers is what the groups are ordered by. */
function readBy(reading: Reading): { readonly group?: Group; readonly measured?: Column } | undefined {
  const at = reading.tokens.findIndex(({ word }) => /^(by|per|each|every)$/.test(word))
  if (at === -1) return undefined
  let next = at + 1
  while (/^(the|each|every|calendar)$/.test(wordAt(reading, next))) next++
  const found = groupAt(reading, next)
  if (!found) throw new NotUnderstood(`There is no column "${reading.tokens[next]?.raw ?? ''}" to group by.`)
  use(reading, at, next + found.length)
  const column = reading.profile.columns.find(({ name }) => name === found.group.column)
  const ordered = reading.tokens.some(({ word }) => word === 'top') && column?.type === 'number'
  return ordered ? { measured: column } : { group: found.group }
}

/** `which month has the highest …`, `top 5 cities`, `the most common weather`. */
function readRanking(reading: Reading, by: Group | undefined): Ranking | undefined {
  const { tokens } = reading
  for (let at = 0; at < tokens.length; at++) {
    const word = wordAt(reading, at)
    const listing = word === 'top' || (word === 'most' && /^(common|frequent)$/.test(wordAt(reading, at + 1)))
    const limit = Number(wordAt(reading, at + 1))
    const start = at + (listing && (word === 'most' || limit > 0) ? 2 : 1)
    const subject = groupAt(reading, start)
    if (!subject) continue
    if (listing) {
      use(reading, at, start + subject.length)
      return ranking(subject.group, 'highest', word === 'top' ? limit || 5 : 1, true)
    }
    if (!/^(which|what)$/.test(word)) continue
    const order = tokens.findIndex(({ word: other }, i) => i > at && (HIGH.test(other) || LOW.test(other)))
    if (order === -1) continue
    const direction = LOW.test(wordAt(reading, order)) ? 'lowest' : 'highest'
    use(reading, at, at + 1 + subject.length)
    use(reading, order, order + 1)
    return ranking(by ?? subject.group, direction, 1, /^(most|least|fewest)$/.test(wordAt(reading, order)))
  }
  return undefined
}

function ranking(group: Group, direction: 'highest' | 'lowest', limit: number, amount: boolean): Ranking {
  return { group, rank: { direction, limit: Math.min(limit, 100) }, amount }
}

/** Values of text columns (`where weather is rain`, `rainy days`), and years (`in 2013`). */
function readFilters(reading: Reading): Filter[] {
  const filters: Filter[] = []
  for (const column of reading.profile.columns) {
    for (const value of column.values) {
      const at = findValue(reading, value)
      if (at === undefined) continue
      if (filters.some((filter) => filter.column === column.name)) {
        throw new NotUnderstood(`I can compare ${column.name} with one value only.`)
      }
      use(reading, at, at + tokensOf(value).length)
      filters.push({ kind: 'value', column: column.name, value })
      useName(reading, column)
    }
  }
  const date = reading.profile.columns.find(({ type }) => type === 'date')
  const year = reading.tokens.findIndex(({ raw }, at) => !reading.used[at] && /^(19|20)\d\d$/.test(raw))
  if (date && year >= 0) {
    use(reading, year, year + 1)
    filters.push({ kind: 'year', column: date.name, value: Number(wordAt(reading, year)) })
  }
  return filters
}

function readMeasure(
  reading: Reading,
  ordering: Column | undefined,
  ranking: Ranking | undefined,
  grouped: boolean,
  notes: string[],
): { readonly op: Operation; readonly column?: string } {
  const whole = ordering ?? takeColumn(reading, undefined)
  const op = takeOperation(reading)
  const partly = op ?? (ranking?.rank.direction === 'lowest' ? 'min' : 'max')
  const column = whole ?? takeColumn(reading, partly) ?? (op === 'count' ? undefined : onlyNumbers(reading, op, notes))
  if (!column || op === 'count') {
    if (op !== undefined && op !== 'count') throw new NotUnderstood('I could not determine which column you mean.')
    if (op === undefined && !ranking?.amount && !grouped)
      throw new NotUnderstood('I could not determine what to compute.')
    return { op: 'count' }
  }
  if (column.type !== 'number') throw new NotUnderstood(`I can't compute with ${column.name}: it holds no numbers.`)
  return { op: op ?? impliedOperation(reading, ranking, grouped), column: column.name }
}

/** The only column of numbers, if an operation was named without a column. */
function onlyNumbers({ profile }: Reading, op: Operation | undefined, notes: string[]): Column | undefined {
  const [only, other] = profile.columns.filter(({ type }) => type === 'number')
  if (op === undefined || !only || other) return undefined
  notes.push(`The question names no column, so I took ${only.name}, the only one with numbers.`)
  return only
}

function impliedOperation(reading: Reading, ranking: Ranking | undefined, grouped: boolean): Operation {
  if (ranking) return ranking.amount ? 'sum' : ranking.rank.direction === 'highest' ? 'max' : 'min'
  // `the maximum temperature` names the column temp_max and the operation at once.
  const said = reading.tokens.find(({ raw }) => /^(maximum|minimum)$/i.test(raw))?.word
  if (!grouped && (said === 'max' || said === 'min')) return said
  return 'mean'
}

/** `how many` and words for operations that are no part of a column's name. */
function takeOperation(reading: Reading): Operation | undefined {
  const counting = reading.tokens.findIndex(
    ({ word }, at) =>
      (word === 'many' && wordAt(reading, at - 1) === 'how') || (word === 'number' && wordAt(reading, at + 1) === 'of'),
  )
  if (counting >= 0) {
    // The noun after it stands for rows.
    use(reading, counting, counting + (wordAt(reading, counting) === 'number' ? 3 : 2))
    return 'count'
  }
  const found = reading.tokens.flatMap(({ word }, at) => {
    const op = reading.used[at] ? undefined : OPERATIONS[word]
    return op ? [{ at, op }] : []
  })
  const first = found.find(({ op }) => op !== 'min' && op !== 'max') ?? found[0]
  for (const { at } of found) use(reading, at, at + 1)
  if (new Set(found.map(({ op }) => op)).size > 1) throw new NotUnderstood('I can compute one thing at a time.')
  return first?.op
}

/** The first column that is named in full; with `op`, also one that is named by a part of its name. */
function takeColumn(reading: Reading, op: Operation | undefined): Column | undefined {
  for (let at = 0; at < reading.tokens.length; at++) {
    // The article is no column, even if one is named `a`.
    if (reading.used[at] || (wordAt(reading, at) === 'a' && wordAt(reading, at - 1) !== 'column')) continue
    const whole = wholeColumnAt(reading, at)
    if (whole && whole.column.type !== 'date') {
      use(reading, at, at + whole.length)
      return whole.column
    }
    if (!op || isPlain(reading.tokens[at]!)) continue
    const named = columnsNamed(reading, at)
    const fitting = named.filter(({ name }) => tokensOf(name).some(({ word }) => word === op))
    const [column, other] = named.length > 1 && fitting.length === 1 ? fitting : named
    if (other) {
      const names = listed(
        named.map(({ name }) => name),
        'or',
      )
      throw new NotUnderstood(`"${reading.tokens[at]!.raw}" could mean ${names}: name one of them.`)
    }
    if (!column) continue
    use(reading, at, at + 1)
    return column
  }
  return undefined
}

function monthOf({ columns }: Profile): Group {
  const date = columns.find(({ type }) => type === 'date')
  if (!date) throw new NotUnderstood('A chart needs a group: say "by" and a column.')
  return { column: date.name, part: 'month' }
}

/** Throws if a number was not understood: it is likely a condition. */
function leftovers(reading: Reading): string[] {
  const left = reading.tokens.filter((token, at) => !reading.used[at] && !isPlain(token))
  const number = left.find(({ raw }) => /\d/.test(raw))
  if (number) throw new NotUnderstood(`I don't know what ${number.raw} means here.`)
  if (left.length === 0) return []
  return [`I did not understand ${listed(left.map(({ raw }) => `"${raw}"`))}, so the result does not depend on it.`]
}

function columnsOf({ columns }: Profile): string {
  const names = (of: readonly Column[]) => listed(of.map(({ name }) => name))
  const numbers = columns.filter(({ type }) => type === 'number')
  const others = columns.filter(({ type }) => type !== 'number')
  const parts = [
    ...(numbers.length > 0 ? [`numbers in ${names(numbers)}`] : []),
    ...(others.length > 0 ? [`text or dates in ${names(others)}`] : []),
  ]
  return `The table has ${listed(parts)}.`
}
