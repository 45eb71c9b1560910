/** Conditions in a question: comparisons, values that stand in cells, years and months. */
import { isVerb, type Mention } from './columns.ts'
import { dateColumn, mentionAt, type Reading, rawAt, spend, use, wordAt } from './reading.ts'
import type { Column, Filter } from './task.ts'
import { isStopWord, tokensOf } from './words.ts'

type Comparison = Extract<Filter, { kind: 'compare' }>['op']

const COMPARISONS: readonly (readonly [string, Comparison])[] = [
  ['no less than', '>='],
  ['no fewer than', '>='],
  ['no more than', '<='],
  ['greater than or equal to', '>='],
  ['less than or equal to', '<='],
  ['more than', '>'],
  ['greater than', '>'],
  ['higher than', '>'],
  ['larger than', '>'],
  ['warmer than', '>'],
  ['hotter than', '>'],
  ['less than', '<'],
  ['fewer than', '<'],
  ['lower than', '<'],
  ['smaller than', '<'],
  ['colder than', '<'],
  ['at least', '>='],
  ['at most', '<='],
  ['up to', '<='],
  ['not equal to', '!='],
  ['equal to', '=='],
  ['is not', '!='],
  ['over', '>'],
  ['above', '>'],
  ['exceeding', '>'],
  ['exceeds', '>'],
  ['exceeded', '>'],
  ['below', '<'],
  ['under', '<'],
  ['equals', '=='],
  ['>=', '>='],
  ['<=', '<='],
  ['!=', '!='],
  ['==', '=='],
  ['=', '=='],
  ['>', '>'],
  ['<', '<'],
  ['is', '=='],
  ['was', '=='],
  ['code', '=='],
]

export function readFilters(reading: Reading): { readonly filters: Filter[]; readonly problem?: string } {
  const filters: Filter[] = []
  const problem = readBetween(reading, filters) ?? readComparisons(reading, filters)
  if (problem) return { filters, problem }
  readLogWords(reading, filters)
  readContains(reading, filters)
  readValues(reading, filters)
  readDates(reading, filters)
  return { filters }
}

/** `between A and B` */
function readBetween(reading: Reading, filters: Filter[]): string | undefined {
  for (let at = 0; at < reading.tokens.length; at++) {
    if (rawAt(reading, at) !== 'between' || rawAt(reading, at + 2) !== 'and') continue
    const low = numberAt(reading, at + 1)
    const high = numberAt(reading, at + 3)
    if (low === undefined || high === undefined) continue
    const column = comparedColumn(reading, at, at + 3)
    if (!column) return `I could not tell which column should be between ${low} and ${high}.`
    use(reading, at, at + 4)
    filters.push({ kind: 'compare', column: column.name, op: '>=', value: Math.min(low, high) })
    filters.push({ kind: 'compare', column: column.name, op: '<=', value: Math.max(low, high) })
  }
  return undefined
}

function readComparisons(reading: Reading, filters: Filter[]): string | undefined {
  for (let at = 0; at < reading.tokens.length; at++) {
    if (reading.used[at]) continue
    const match = COMPARISONS.find(([words]) => words.split(' ').every((word, i) => rawAt(reading, at + i) === word))
    if (!match) continue
    const [words, op] = match
    const numberIndex = at + words.split(' ').length
    const value = numberAt(reading, numberIndex)
    if (value === undefined) continue
    const weak = op === '==' || op === '!='
    const column = comparedColumn(reading, at, numberIndex, weak)
    if (!column && weak) continue
    if (!column) return `I could not tell which column should be ${words} ${value}.`
    use(reading, at, numberIndex + 1)
    filters.push({ kind: 'compare', column: column.name, op, value })
  }
  readNextTo(reading, filters)
  return undefined
}

/** A column with a number right behind it: `status 404`, `year 2012`. */
function readNextTo(reading: Reading, filters: Filter[]): void {
  for (const mention of reading.mentions) {
    const value = numberAt(reading, mention.to)
    const column = mention.columns[0]!
    if (value === undefined || reading.used[mention.to] || reading.spent.has(mention) || column.type !== 'number')
      continue
    spend(reading, mention)
    use(reading, mention.to, mention.to + 1)
    filters.push({ kind: 'compare', column: column.name, op: '==', value })
  }
}

/** The number column that a comparison is about: the nearest before it, else the nearest behind it, else the only one. */
function comparedColumn(reading: Reading, from: number, to: number, onlyBefore = false): Column | undefined {
  const numeric = reading.mentions.filter((mention) => numericOf(mention) && !afterBy(reading, mention))
  const before = numeric.findLast((mention) => mention.to <= from && from - mention.to <= (onlyBefore ? 1 : 4))
  const behind = onlyBefore ? undefined : numeric.find((mention) => mention.from > to && mention.from - to <= 4)
  const mention = before ?? behind
  if (mention) {
    if (!isMeasured(reading, mention)) spend(reading, mention)
    return numericOf(mention)
  }
  if (onlyBefore) return undefined
  const columns = reading.profile.columns.filter((column) => column.type === 'number')
  if (numeric.length === 1) return numericOf(numeric[0]!)
  return columns.length === 1 ? columns[0] : undefined
}

/** `average wind over 5`: the one named column is both computed and compared. */
function isMeasured(reading: Reading, mention: Mention): boolean {
  const others = reading.mentions.some((other) => other !== mention && numericOf(other) && !reading.spent.has(other))
  return (
    !others &&
    ['avg', 'mean', 'sum', 'total', 'median'].some((op) =>
      reading.tokens.some((token, at) => token.word === op && at < mention.from && mention.from - at <= 3),
    )
  )
}

function numericOf(mention: Mention): Column | undefined {
  return mention.columns.find((column) => column.type === 'number')
}

function afterBy(reading: Reading, mention: Mention): boolean {
  return /^(by|per|each)$/.test(rawAt(reading, mention.from - 1))
}

function numberAt(reading: Reading, at: number): number | undefined {
  const token = reading.tokens[at]
  return token && !token.quoted && /^-?\d+(\.\d+)?$/.test(token.raw) ? Number(token.raw) : undefined
}

/** What people say of access logs: `404s`, `5xx`, `errors`, `server errors`. */
function readLogWords(reading: Reading, filters: Filter[]): void {
  if (reading.profile.source.kind !== 'access_log' || filters.some((filter) => filter.column === 'status')) return
  const between = (low: number, high: number) =>
    filters.push(
      { kind: 'compare', column: 'status', op: '>=', value: low },
      { kind: 'compare', column: 'status', op: '<=', value: high },
    )
  for (let at = 0; at < reading.tokens.length; at++) {
    if (reading.used[at]) continue
    const raw = rawAt(reading, at)
    const code = /^([1-5]\d\d)s?$/.exec(raw)?.[1]
    const family = /^([1-5])xx$/.exec(raw)?.[1]
    const isError = /^(errors?|failures?|failed)$/.test(raw)
    if (!code && !family && !isError) continue
    use(reading, at, at + 1)
    if (code) filters.push({ kind: 'compare', column: 'status', op: '==', value: Number(code) })
    else if (family) between(Number(family) * 100, Number(family) * 100 + 99)
    else if (rawAt(reading, at - 1) === 'server') between(500, 599)
    else if (rawAt(reading, at - 1) === 'client') between(400, 499)
    else between(400, 599)
    for (let next = at + 1; /^(errors?|status|responses?)$/.test(rawAt(reading, next)); next++)
      use(reading, next, next + 1)
    return
  }
}

/** `name contains "smith"` */
function readContains(reading: Reading, filters: Filter[]): void {
  for (let at = 1; at < reading.tokens.length - 1; at++) {
    if (!/^(contains?|containing|includes?|including)$/.test(rawAt(reading, at))) continue
    const mention = reading.mentions.findLast((candidate) => candidate.to <= at && at - candidate.to <= 2)
    if (!mention || numericOf(mention)) continue
    spend(reading, mention)
    use(reading, at, at + 2)
    filters.push({ kind: 'contains', column: mention.columns[0]!.name, value: reading.tokens[at + 1]!.raw })
  }
}

/** Values that stand in cells, word for word or with an ending: `in Seattle`, `rainy days`, `where weather is not sun`. */
function readValues(reading: Reading, filters: Filter[]): void {
  const values = new Map<string, { column: string; values: string[]; not: boolean }>()
  const add = (column: string, value: string, from: number, to: number) => {
    const not = [1, 2].some((back) => /^(not|no|except|excluding|without|non|!=)$/.test(rawAt(reading, from - back)))
    const entry = values.get(column) ?? { column, values: [], not }
    if (!entry.values.includes(value)) entry.values.push(value)
    values.set(column, entry)
    const named = reading.mentions.find(
      (mention) => mention.to <= from && from - mention.to <= 3 && mention.columns.some(({ name }) => name === column),
    )
    if (named && !afterBy(reading, named)) spend(reading, named)
    use(reading, from, to)
  }
  const longestFirst = [...reading.profile.mentions].sort((a, b) => b.value.length - a.value.length)
  for (const { column, value } of longestFirst) {
    const words = tokensOf(value).map((token) => token.raw.toLowerCase())
    for (const [from, to] of placesOf(reading, words, value)) add(column, value, from, to)
  }
  for (const column of reading.profile.columns) {
    for (const value of column.values) {
      reading.tokens.forEach((token, at) => {
        if (isFree(reading, at) && hasEnding(token.raw.toLowerCase(), value.toLowerCase()))
          add(column.name, value, at, at + 1)
      })
    }
  }
  for (const entry of values.values()) filters.push({ kind: 'text', ...entry })
}

/** Where a value's words stand: whole, in order, not yet used, and not as the name of a column. */
function placesOf(reading: Reading, words: readonly string[], value: string): [number, number][] {
  const places: [number, number][] = []
  reading.tokens.forEach((token, at) => {
    if (token.quoted && token.raw.toLowerCase() === value.toLowerCase() && !reading.used[at]) places.push([at, at + 1])
    else if (words.length > 0 && words.every((word, i) => rawAt(reading, at + i) === word && isFree(reading, at + i))) {
      places.push([at, at + words.length])
    }
  })
  return places
}

function isFree(reading: Reading, at: number): boolean {
  if (reading.used[at] || mentionAt(reading, at)?.whole) return false
  const said = rawAt(reading, at)
  return said.length >= 2 && !isStopWord(said) && !isVerb(wordAt(reading, at))
}

/** `rainy`, `rains`, `snowy`, `sunny`, `foggy`. */
function hasEnding(word: string, value: string): boolean {
  if (value.length < 3 || !word.startsWith(value)) return false
  const ending = word.slice(value.length)
  return ['y', 's', 'es', 'ed', 'ing', `${value.at(-1)}y`].includes(ending)
}

const MONTHS = 'january february march april may june july august september october november december'.split(' ')

const DATE_WORDS: Readonly<Record<string, '>' | '>=' | '<' | '<='>> = {
  after: '>',
  since: '>=',
  from: '>=',
  before: '<',
  until: '<=',
  to: '<=',
  through: '<=',
}

/** `in 2012`, `in March`, `during July 2013`, where the table has a date column. */
function readDates(reading: Reading, filters: Filter[]): void {
  const date = dateColumn(reading.profile)
  if (!date) return
  reading.tokens.forEach((token, at) => {
    if (reading.used[at] || token.quoted) return
    if (/^\d{4}-\d\d-\d\d$/.test(token.raw)) {
      filters.push({
        kind: 'date',
        column: date.name,
        op: DATE_WORDS[rawAt(reading, at - 1)] ?? '==',
        value: token.raw,
      })
      use(reading, at, at + 1)
      return
    }
    const before = rawAt(reading, at - 1)
    const introduced = /^(in|during|of|for|since|from|and|or)$/.test(before)
    const month = MONTHS.findIndex(
      (name) => name === token.raw.toLowerCase() || (introduced && name.slice(0, 3) === token.raw.toLowerCase()),
    )
    if (month >= 0 && (introduced || (token.raw !== 'may' && token.raw !== 'march'))) {
      filters.push({ kind: 'part', column: date.name, part: 'month', value: month + 1 })
      use(reading, at, at + 1)
    } else if (/^(19|20)\d\d$/.test(token.raw) && (introduced || before === 'year' || reading.used[at - 1])) {
      filters.push({ kind: 'part', column: date.name, part: 'year', value: Number(token.raw) })
      use(reading, at, at + 1)
    }
  })
}
