/** A question about a table → what to compute. Groups and ranks are read here; conditions in filters.ts. */
import { readFilters } from './filters.ts'
import { readMeasures } from './measures.ts'
import { listed } from './numbers.ts'
import { readRank } from './rank.ts'
import { dateColumn, groupAt, mentionAt, type Reading, rawAt, readQuestion, spend, use, wordAt } from './reading.ts'
import type { Group, Profile, Question, TableQuery, Understood } from './task.ts'
import { unreadWords } from './unread.ts'

export function readTableQuery(question: Question, profile: Profile): Understood {
  if (question.before === undefined) return readOne(question.text, profile, undefined)
  const before = readOne(question.before, profile, undefined)
  return readOne(question.text, profile, before.ok ? before.query : undefined)
}

/** `before` is the query of an earlier turn: what the text leaves out is taken from it. */
function readOne(text: string, profile: Profile, before: TableQuery | undefined): Understood {
  const reading = readQuestion(text, profile)
  const chart = /\b(plot|chart|graph|draw|visuali[sz]e|histogram)\b/i.test(text)
  const { filters, problem } = readFilters(reading)
  if (problem) return { ok: false, problem: `${problem} ${columnsOf(profile)}` }
  const groups = readGroups(reading)
  const ranked = readRank(reading, groups)
  const measures = readMeasures(reading, { chart, rank: ranked, groups, filters, before })
  if (measures.kind === 'unclear') return { ok: false, problem: `${measures.problem} ${columnsOf(profile)}` }
  const strange = unreadWords(reading)
  const lost = strange.find(({ group }) => group)
  if (lost) return { ok: false, problem: `There is no column "${lost.word}" to group by. ${columnsOf(profile)}` }
  const ownGroups = measures.groups ?? ranked?.groups ?? groups
  const named = new Set(filters.map((filter) => filter.column))
  const query: TableQuery = {
    kind: measures.kind,
    measures: measures.measures,
    groups: ownGroups.length > 0 ? ownGroups : (before?.groups ?? compared(filters)),
    filters: [...filters, ...(before?.filters.filter((filter) => !named.has(filter.column)) ?? [])],
    rank: ranked ? { direction: ranked.direction, limit: ranked.limit } : undefined,
    chart,
    assumed: [
      ...strange.map(({ word }) => `I could make nothing of "${word}", so it is not taken into account.`),
      ...reading.assumed,
    ],
  }
  return { ok: true, query: chart ? forChart(query, profile, text) : query }
}

/** `for rain and sun`: several values of one column are set side by side. */
function compared(filters: TableQuery['filters']): Group[] {
  return filters.flatMap((filter) =>
    filter.kind === 'text' && !filter.not && filter.values.length > 1
      ? [{ column: filter.column, part: undefined }]
      : [],
  )
}

/** A chart needs something along its axis. */
function forChart(query: TableQuery, profile: Profile, text: string): TableQuery {
  if (query.groups.length > 0 || query.kind === 'correlation') return query
  const date = dateColumn(profile)
  if (date && !/histogram|distribution/i.test(text)) {
    return {
      ...query,
      kind: 'measure',
      groups: [{ column: date.name, part: 'year_month' }],
      assumed: [...query.assumed, `No grouping was named, so the chart goes by month of ${date.name}.`],
    }
  }
  return query.measures.some((measure) => measure.column !== undefined) ? { ...query, kind: 'histogram' } : query
}

const BY = /^(by|per|each|every|across|grouped)$/

function readGroups(reading: Reading): Group[] {
  const groups: Group[] = []
  for (let at = 0; at < reading.tokens.length; at++) {
    const raw = rawAt(reading, at)
    const adverb = /^(yearly|annual|monthly|daily|hourly)$/.test(raw)
    if (raw === 'over' && rawAt(reading, at + 1) === 'time') {
      const date = dateColumn(reading.profile)
      if (date) groups.push({ column: date.name, part: 'year_month' })
      use(reading, at, at + 2)
    }
    if ((!BY.test(raw) && !adverb) || reading.used[at] || isSorting(reading, at)) continue
    const start = adverb ? at : skipFillers(reading, at + 1)
    collect(reading, start, groups)
    if (groups.length > 0) use(reading, at, at + 1)
  }
  return groups.filter(
    (group, i) => groups.findIndex((other) => other.column === group.column && other.part === group.part) === i,
  )
}

/** `sort the orders by quantity` */
function isSorting(reading: Reading, by: number): boolean {
  return reading.tokens.some(
    (token, at) => at < by && by - at <= 4 && /^(sort|sorted|order|ordered|rank|ranked)$/.test(token.raw.toLowerCase()),
  )
}

/** A group at `start`, and more behind `and`. */
function collect(reading: Reading, start: number, groups: Group[]): void {
  let at = start
  while (groups.length < 2) {
    const found = groupAt(reading, at)
    if (!found || reading.used[at] || isOrdering(reading, found.group)) return
    groups.push(found.group)
    const mention = mentionAt(reading, at)
    if (mention) spend(reading, mention)
    use(reading, at, at + found.length)
    at += found.length
    if (rawAt(reading, at) !== 'and' || isMeasureWord(wordAt(reading, at + 1))) return
    at = skipFillers(reading, at + 1)
  }
}

/** `top 5 days by precipitation`: what stands behind `by` is what they are ordered by. */
function isOrdering(reading: Reading, group: Group): boolean {
  const column = reading.profile.columns.find(({ name }) => name === group.column)
  const ranked = reading.tokens.some((token) => /^(top|bottom)$/.test(token.raw.toLowerCase()))
  return ranked && group.part === undefined && column?.type === 'number' && column.distinct > 12
}

function isMeasureWord(word: string): boolean {
  return /^(plot|chart|draw|graph|show|then|the|save|avg|mean|sum|max|min|median|count)$/.test(word)
}

function skipFillers(reading: Reading, from: number): number {
  let at = from
  while (/^(the|each|every|by|type|kind|calendar|different|of|a)$/.test(rawAt(reading, at)) && !mentionAt(reading, at))
    at++
  return at
}

function columnsOf(profile: Profile): string {
  const numbers = profile.columns.filter((column) => column.type === 'number').map((column) => column.name)
  const others = profile.columns.filter((column) => column.type !== 'number').map((column) => column.name)
  const parts = [
    numbers.length > 0 ? `numbers in ${listed(numbers)}` : '',
    others.length > 0 ? `text or dates in ${listed(others)}` : '',
  ]
  return `The table has ${listed(parts.filter((part) => part !== ''))}.`
}
