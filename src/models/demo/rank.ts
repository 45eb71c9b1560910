/** `which X has the highest Y`, `top 5 X`, `most common X`, `the hottest month`: what comes first, and by which group. */
import { groupAt, mentionAt, type Reading, rawAt, spend, use, wordAt } from './reading.ts'
import type { Group } from './task.ts'

export interface Rank {
  readonly direction: 'highest' | 'lowest'
  readonly limit: number
  readonly groups: readonly Group[]
  /** Words of the column that an adjective stands for: `hottest` → temp, max. */
  readonly hint: readonly string[]
  /** `most`, `least`, `common`: counts or sums, rather than extremes. */
  readonly amount: boolean
}

const HIGH = new Set('highest largest biggest greatest most top best peak max maximum longest'.split(' '))
const LOW = new Set('lowest smallest least fewest bottom worst min minimum shortest'.split(' '))

const ADJECTIVES: Readonly<Record<string, readonly ['highest' | 'lowest', ...string[]]>> = {
  hottest: ['highest', 'temp', 'max'],
  warmest: ['highest', 'temp', 'max'],
  coldest: ['lowest', 'temp', 'min'],
  coolest: ['lowest', 'temp', 'min'],
  wettest: ['highest', 'precip', 'rain'],
  rainiest: ['highest', 'precip', 'rain'],
  driest: ['lowest', 'precip', 'rain'],
  windiest: ['highest', 'wind'],
  calmest: ['lowest', 'wind'],
  cheapest: ['lowest', 'price', 'cost'],
  priciest: ['highest', 'price', 'cost'],
  expensive: ['highest', 'price', 'cost'],
  oldest: ['highest', 'age'],
  youngest: ['lowest', 'age'],
  fastest: ['highest', 'speed'],
  slowest: ['lowest', 'speed'],
  heaviest: ['highest', 'weight'],
  lightest: ['lowest', 'weight'],
  tallest: ['highest', 'height'],
  richest: ['highest', 'income'],
  poorest: ['lowest', 'income'],
  busiest: ['highest'],
}

/** Undefined where nothing is ranked. `by` are the groups that were read already. */
export function readRank(reading: Reading, by: readonly Group[]): Rank | undefined {
  const sorted = readSort(reading)
  if (sorted) return sorted
  const at = rankWordAt(reading)
  if (at === -1) return undefined
  const word = rawAt(reading, at)
  const adjective = ADJECTIVES[word]
  const limit = limitAround(reading, at)
  const subject = findSubject(reading, at)
  const common = /^(common|frequent|popular|often|active)$/.test(rawAt(reading, at + 1))
  if (!subject && !adjective && limit === undefined && !common) return undefined
  // `average temp by month, highest first`: the group is given, the word only orders it.
  const named = subject ? [subject.group] : []
  const groups = by.length > 0 && subject && sameGroup(by[0]!, subject.group) ? by : [...named, ...(subject ? [] : by)]
  if (subject) claim(reading, subject)
  const direction = adjective?.[0] ?? (LOW.has(word) ? 'lowest' : 'highest')
  if (adjective || common || /^(top|bottom|most|least|fewest)$/.test(word)) use(reading, at, at + 1)
  return {
    direction,
    limit: limit ?? 1,
    groups,
    hint: adjective?.slice(1) ?? [],
    amount: common || /^(most|least|fewest|top|bottom|busiest)$/.test(word),
  }
}

/** `most expensive` is said by its second word. */
function rankWordAt(reading: Reading): number {
  const at = reading.tokens.findIndex((token, i) => !reading.used[i] && isRankWord(token.raw.toLowerCase()))
  return at >= 0 && rawAt(reading, at) === 'most' && rawAt(reading, at + 1) in ADJECTIVES ? at + 1 : at
}

/** `sort by quantity, descending`: the first rows in that order. */
function readSort(reading: Reading): Rank | undefined {
  const text = reading.tokens.map((token) => token.raw.toLowerCase()).join(' ')
  if (!/\b(sort|sorted|order|ordered|rank|ranked)\b.*\bby\b/.test(text) || /\bper\b/.test(text)) return undefined
  const direction = /\b(desc|descending|highest|largest|most|rank|ranked)\b/.test(text) ? 'highest' : 'lowest'
  return { direction, limit: 10, groups: [], hint: [], amount: false }
}

interface Subject {
  readonly at: number
  readonly group: Group
  readonly length: number
}

function claim(reading: Reading, subject: Subject): void {
  const mention = mentionAt(reading, subject.at)
  if (mention) spend(reading, mention)
  use(reading, subject.at, subject.at + subject.length)
}

function isRankWord(raw: string): boolean {
  return HIGH.has(raw) || LOW.has(raw) || raw in ADJECTIVES
}

/** What is ranked: behind `which`, before `with the highest`, or behind the rank word itself. */
function findSubject(reading: Reading, at: number): Subject | undefined {
  for (let i = 0; i < reading.tokens.length; i++) {
    if (reading.used[i]) continue
    const raw = rawAt(reading, i)
    if (/^(which|what)$/.test(raw)) {
      const found = subjectAt(reading, i + 1) ?? (raw === 'which' ? subjectAt(reading, i + 2) : undefined)
      if (found) return found
    }
    if (raw === 'when') {
      const date = reading.profile.columns.find((column) => column.type === 'date')
      if (date) return { at: i, group: { column: date.name, part: undefined }, length: 1 }
    }
    const isBefore = /^(with|had|has|have|having|where)$/.test(rawAt(reading, i + 1)) && i < at && at - i <= 4
    if (isBefore) {
      const found = subjectAt(reading, i)
      if (found) return found
    }
  }
  const word = rawAt(reading, at)
  const takesNext =
    word in ADJECTIVES || /^(top|bottom|most|least|fewest)$/.test(word) || limitAround(reading, at) !== undefined
  if (!takesNext) return undefined
  let next = at + 1
  while (/^(\d+|common|frequent|popular|active|the|often|expensive)$/.test(rawAt(reading, next))) next++
  return subjectAt(reading, next)
}

/** Something to group by: a column that does not hold measurements, or a part of the date. */
function subjectAt(reading: Reading, at: number): Subject | undefined {
  const found = groupAt(reading, at)
  if (!found || reading.used[at]) return undefined
  const column = reading.profile.columns.find(({ name }) => name === found.group.column)
  const coded = column?.type === 'number' && column.distinct * 3 > reading.profile.rows
  return coded ? undefined : { at, ...found }
}

/** `top 5 …`, `5 most …`, `the 3 hottest …` */
function limitAround(reading: Reading, at: number): number | undefined {
  for (const i of [at + 1, at - 1]) {
    const raw = rawAt(reading, i)
    const number = /^\d{1,3}$/.test(raw) && !reading.used[i] ? Number(raw) : NUMBERS.indexOf(raw)
    if (number >= 1) {
      use(reading, i, i + 1)
      return Math.min(number, 100)
    }
  }
  return /^(top|bottom)$/.test(rawAt(reading, at)) && !/^(of)$/.test(wordAt(reading, at + 1)) ? 5 : undefined
}

const NUMBERS = ['', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']

function sameGroup(a: Group, b: Group): boolean {
  return a.column === b.column && a.part === b.part
}
