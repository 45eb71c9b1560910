/** What a question wants computed: operations and the columns they go over, and what is taken where one is left out. */
import type { Mention } from './columns.ts'
import { listed } from './numbers.ts'
import type { Rank } from './rank.ts'
import { type Reading, rawAt, wordAt } from './reading.ts'
import type { Column, Filter, Group, Measure, Operation, TableQuery } from './task.ts'
import { isStopWord } from './words.ts'

export type Measures =
  | { readonly kind: TableQuery['kind']; readonly measures: readonly Measure[]; readonly groups?: readonly Group[] }
  | { readonly kind: 'unclear'; readonly problem: string }

export interface Around {
  readonly chart: boolean
  readonly rank: Rank | undefined
  readonly groups: readonly Group[]
  readonly filters: readonly Filter[]
  readonly before: TableQuery | undefined
}

const WORDS: Readonly<Record<string, Operation>> = {
  avg: 'mean',
  mean: 'mean',
  typical: 'mean',
  sum: 'sum',
  total: 'sum',
  min: 'min',
  lowest: 'min',
  smallest: 'min',
  least: 'min',
  max: 'max',
  highest: 'max',
  largest: 'max',
  biggest: 'max',
  greatest: 'max',
  most: 'max',
  peak: 'max',
  median: 'median',
  std: 'std',
  stdev: 'std',
  stddev: 'std',
  deviation: 'std',
  spread: 'std',
  unique: 'unique',
  distinct: 'unique',
  different: 'unique',
  count: 'count',
}

const SUMMARY: readonly Operation[] = ['count', 'mean', 'median', 'std', 'min', 'max']

interface Heard {
  readonly at: number
  readonly op: Operation
}

export function readMeasures(reading: Reading, around: Around): Measures {
  const text = reading.tokens.map((token) => token.raw.toLowerCase()).join(' ')
  const columns = measured(reading)
  if (/\bcorrelat/.test(text)) return correlation(columns)
  if (/\bhistogram\b|\bdistribution of\b/.test(text) && columns[0]?.columns.some(isNumber)) {
    return { kind: 'histogram', measures: [{ op: 'count', column: pick(columns[0], 'mean', reading).name }] }
  }
  if (isDescription(text, columns, around)) return { kind: 'describe', measures: [] }
  const heard = heardIn(reading, columns, around)
  const wantsCount = /\b(how many|number of|count|how often|percentage|percent|share|proportion|fraction)\b/.test(text)
  if (wantsCount && !heard.some(({ op }) => op === 'unique')) return counting(reading, columns, around)
  if (/\b(statistics|stats|summary|summarize|summarise)\b/.test(text) && heard.length === 0) {
    return measure(
      columns
        .map((mention) => pick(mention, 'mean', reading))
        .flatMap((column) => SUMMARY.map((op) => ({ op, column: column.name }))),
    )
  }
  if (columns.length > 0) return paired(reading, columns, heard, around)
  return withoutColumn(reading, heard, around)
}

function measure(measures: readonly Measure[], groups?: readonly Group[]): Measures {
  return { kind: 'measure', measures: unique(measures), groups }
}

function unique(measures: readonly Measure[]): Measure[] {
  return measures.filter(
    (one, i) => measures.findIndex((other) => other.op === one.op && other.column === one.column) === i,
  )
}

/** The mentions that are left for computing over. */
function measured(reading: Reading): Mention[] {
  return reading.mentions.filter((mention) => !reading.spent.has(mention) && !reading.used[mention.from])
}

/** Operation words that don't belong to a column's name, a filter or a group. */
function heardIn(reading: Reading, columns: readonly Mention[], around: Around): Heard[] {
  const heard: Heard[] = []
  reading.tokens.forEach((token, at) => {
    const op = WORDS[token.word]
    const inName = columns.some((mention) => mention.from <= at && at < mention.to)
    if (!op || inName || reading.used[at] || token.quoted) return
    // A word that ranks groups (`which month has the highest average …`) is an operation only if it is the only one.
    const ranks =
      around.rank !== undefined &&
      /^(highest|lowest|largest|smallest|biggest|greatest|most|least|peak|max|min)$/.test(token.word)
    if (!(op === 'count' && /^(no|ac)$/.test(rawAt(reading, at - 1)))) heard.push({ at: ranks ? -1 - at : at, op })
  })
  const real = heard.filter(({ at }) => at >= 0)
  return real.length > 0 ? real : heard.map(({ at, op }) => ({ at: at < 0 ? -1 - at : at, op }))
}

function correlation(columns: readonly Mention[]): Measures {
  const numeric = columns.map((mention) => mention.columns.find(isNumber)).filter((column) => column !== undefined)
  if (numeric.length !== 2) return { kind: 'unclear', problem: 'A correlation needs the names of two number columns.' }
  return { kind: 'correlation', measures: numeric.map((column) => ({ op: 'mean', column: column.name })) }
}

function isDescription(text: string, columns: readonly Mention[], around: Around): boolean {
  if (columns.length > 0 || around.groups.length > 0 || around.rank) return false
  return /\b(describe|columns?|overview|summari[sz]e|summary|explore|structure|fields|headers?|statistics|stats|what is in|what's in|look at|tell me about|analy[sz]e)\b/.test(
    text,
  )
}

/** `how many …`: rows, unless a text column is asked for by its name and nothing is filtered: then its different values. */
function counting(reading: Reading, columns: readonly Mention[], around: Around): Measures {
  const many = reading.tokens.findIndex((token) => /^(many|number|count)$/.test(token.word))
  const after = columns.find((mention) => mention.from > many && mention.from - many <= 2)
  const column = after?.columns[0]
  const values = column?.type === 'text' && column.distinct < reading.profile.rows
  const plain = around.filters.length === 0 && around.groups.length === 0 && !around.rank
  if (column && values && plain && /\b(type|kind|value)s?\b|many/.test(rawsAround(reading, many))) {
    return measure([{ op: 'unique', column: column.name }])
  }
  const grouped = column && values && !around.rank && around.groups.length === 0 && wordAt(reading, many) === 'count'
  return measure([{ op: 'count', column: undefined }], grouped ? [{ column: column.name, part: undefined }] : undefined)
}

function rawsAround(reading: Reading, at: number): string {
  return reading.tokens
    .slice(at, at + 5)
    .map((token) => token.raw.toLowerCase())
    .join(' ')
}

/** Each column with the operations before it: `mean and median of wind and the maximum of precipitation`. */
function paired(reading: Reading, columns: readonly Mention[], heard: readonly Heard[], around: Around): Measures {
  const measures: Measure[] = []
  let current: Operation[] = []
  let open = false
  const moves = [
    ...heard.map((one) => ({ ...one, mention: undefined })),
    ...columns.map((mention) => ({ at: mention.from, op: undefined, mention })),
  ]
  moves.sort((a, b) => a.at - b.at)
  for (const move of moves) {
    if (move.op !== undefined) {
      current = open ? [...current, move.op] : [move.op]
      open = true
      continue
    }
    open = false
    const before = current.length > 0 ? current : heard.map(({ op }) => op)
    const implied = before.length > 0 ? before : impliedBy(reading, move.mention, around)
    for (const op of implied) {
      for (const column of meant(move.mention, op, reading)) {
        if (op !== 'unique' && op !== 'count' && column.type !== 'number') {
          return textual(reading, move.mention, column, op, around)
        }
        measures.push({ op, column: op === 'count' ? undefined : column.name })
      }
    }
  }
  return measure(measures)
}

/** An operation on numbers was asked of a column of words: said, unless counting its values is what was meant. */
function textual(reading: Reading, mention: Mention, column: Column, op: Operation, around: Around): Measures {
  if (around.rank || around.chart) {
    reading.assumed.push(`${column.name} holds no numbers, so I counted rows.`)
    return measure([{ op: 'count', column: undefined }], [{ column: column.name, part: undefined }])
  }
  const value = strangeValue(reading, mention)
  if (value !== undefined) {
    const there = column.values.length > 0 ? ` Its values are ${listed(column.values)}.` : ''
    return { kind: 'unclear', problem: `No ${column.name} is "${value}".${there}` }
  }
  return { kind: 'unclear', problem: `I can't compute the ${op} of ${column.name}: it holds no numbers.` }
}

/** `in the West region`, `where region is West`: a word beside a text column's name that none of its cells holds. */
function strangeValue(reading: Reading, mention: Mention): string | undefined {
  const next = /^(is|was|equals?|=|==)$/.test(rawAt(reading, mention.to)) ? mention.to + 1 : -1
  return [next, mention.from - 1]
    .map((at) => ({ at, token: reading.tokens[at] }))
    .find(({ at, token }) => token && !reading.used[at] && !(token.word in WORDS) && !isStopWord(rawAt(reading, at)))
    ?.token?.raw
}

/** No operation word stands by the column. */
function impliedBy(reading: Reading, mention: Mention, around: Around): readonly Operation[] {
  const column = mention.columns[0]!
  if (around.rank) {
    if (column.type !== 'number') return ['count']
    if (around.rank.amount) return ['sum']
    return [around.rank.direction === 'highest' ? 'max' : 'min']
  }
  const said = reading.tokens.slice(mention.from, mention.to).map((token) => token.raw.toLowerCase())
  if (around.before && !around.groups.length) return around.before.measures.map(({ op }) => op)
  // `the maximum temperature` names the column temp_max and says what to do with it.
  if (said.includes('maximum')) return ['max']
  if (said.includes('minimum')) return ['min']
  if (column.type !== 'number') return ['unique']
  // On one day there is one value, and its mean is that.
  if (around.filters.some((filter) => filter.kind === 'date' && filter.op === '==')) return ['mean']
  return around.groups.length > 0 || around.chart ? ['mean'] : SUMMARY
}

/** One of the columns a word may mean; all of them, said so, where nothing tells them apart. */
function meant(mention: Mention, op: Operation, reading: Reading): Column[] {
  if (mention.columns.length === 1) return [mention.columns[0]!]
  const hinted = mention.columns.filter(
    (column) =>
      op !== 'mean' &&
      column.name
        .toLowerCase()
        .split(/[^a-z]+/)
        .includes(op),
  )
  if (hinted.length === 1) return hinted
  const numeric = mention.columns.filter(isNumber)
  const columns = (numeric.length > 0 ? numeric : [...mention.columns]).slice(0, 4)
  if (columns.length > 1) {
    const word = reading.tokens[mention.from]!.raw
    const note = `"${word}" could mean ${listed(
      columns.map(({ name }) => name),
      'or',
    )}; I took ${columns.length === 2 ? 'both' : 'all of them'}.`
    if (!reading.assumed.includes(note)) reading.assumed.push(note)
  }
  return columns
}

function pick(mention: Mention, op: Operation, reading: Reading): Column {
  return meant(mention, op, reading)[0]!
}

function withoutColumn(reading: Reading, heard: readonly Heard[], around: Around): Measures {
  const { rank, before } = around
  const numeric = reading.profile.columns.filter(isNumber)
  if (rank) {
    const hinted = rank.hint.length > 0 ? hintedColumn(numeric, rank.hint) : undefined
    if (hinted)
      return measure([
        {
          op: heard.find(({ op }) => op === 'mean' || op === 'sum' || op === 'median')?.op ?? opOfHint(rank, hinted),
          column: hinted.name,
        },
      ])
    if (rank.hint.length === 0 && rank.groups.length > 0) return measure([{ op: 'count', column: undefined }])
    if (!before) return { kind: 'unclear', problem: 'I could not tell what to put in order.' }
  }
  if (heard.length > 0 && before) {
    const columns = [...new Set(before.measures.map(({ column }) => column))].filter((column) => column !== undefined)
    if (columns.length > 0) return measure(heard.flatMap(({ op }) => columns.map((column) => ({ op, column }))))
  }
  if (before) return measure(before.measures)
  if (heard.length > 0 && numeric.length === 1) {
    const { name } = numeric[0]!
    reading.assumed.push(
      `The question names no column that the table has, so I took ${name}, the only one with numbers.`,
    )
    return measure(heard.map(({ op }) => ({ op, column: name })))
  }
  if (heard.length === 0 && (around.groups.length > 0 || around.filters.length > 0))
    return measure([{ op: 'count', column: undefined }])
  return {
    kind: 'unclear',
    problem: heard.length > 0 ? 'I could not tell which column you mean.' : 'I could not tell what to compute.',
  }
}

/** The column that most of an adjective's words fit. */
function hintedColumn(columns: readonly Column[], hint: readonly string[]): Column | undefined {
  const score = (column: Column) => hint.filter((word) => column.name.toLowerCase().includes(word)).length
  const best = [...columns].sort((a, b) => score(b) - score(a))[0]
  return best &&
    score(best) > 0 &&
    hint.some((word) => (word.length > 3 ? best.name.toLowerCase().includes(word) : score(best) > 0))
    ? best
    : undefined
}

/** The hottest day is an extreme; the hottest month a mean; the wettest month a sum. */
function opOfHint(rank: Rank, column: Column): Operation {
  const part = rank.groups[0]?.part
  if (part === undefined || part === 'day') return rank.direction === 'highest' ? 'max' : 'min'
  return /precip|rain|sales|amount|count/i.test(column.name) ? 'sum' : 'mean'
}

function isNumber(column: Column): boolean {
  return column.type === 'number'
}
