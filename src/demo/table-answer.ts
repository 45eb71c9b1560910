/** The result of a table query in words, with the numbers in it. */
import { counted, formatNumber, listed, textChart } from './numbers.ts'
import type { TableFacts } from './table-code.ts'
import type { Fact, Filter, Group, Operation, Table, TableQuery } from './task.ts'

export interface TableAnswer {
  readonly text: string
  readonly facts: readonly Fact[]
  readonly table: Table
}

/** Groups in an answer. */
const MAX_LISTED = 31

const NAMES: Readonly<Record<Operation, readonly string[]>> = {
  count: ['count', 'number', 'rows', 'total'],
  mean: ['mean', 'average'],
  sum: ['sum', 'total'],
  min: ['min', 'minimum', 'lowest'],
  max: ['max', 'maximum', 'highest'],
  median: ['median'],
}

export function describeResult(file: string, query: TableQuery, facts: TableFacts): TableAnswer {
  const said = facts.groups && facts.groups.length > 0 ? groups(file, query, facts) : single(file, query, facts)
  return { ...said, text: [said.text, ...query.notes].join('\n\n') }
}

/** `mean of wind` */
export function measureName({ op, column }: TableQuery): string {
  if (op === 'count') return 'number of rows'
  return `${{ mean: 'mean', sum: 'sum', min: 'minimum', max: 'maximum', median: 'median' }[op]} of ${column}`
}

export function groupName({ column, part }: Group): string {
  if (!part) return column
  return part === 'month' ? 'calendar month' : part
}

/** `weather is rain and the year of date is 2013`; empty without filters. */
export function conditions(filters: readonly Filter[]): string {
  return listed(
    filters.map(({ kind, column, value }) =>
      kind === 'year' ? `the year of ${column} is ${value}` : `${column} is ${value}`,
    ),
  )
}

function single(file: string, query: TableQuery, facts: TableFacts): TableAnswer {
  const value = facts.groups ? null : (facts.value ?? null)
  const name = measureName(query)
  const table = { header: ['measure', 'value'], rows: [[name, value ?? '']] }
  const found = value === null ? [] : [factOf(query, value)]
  if (query.op === 'count' && value !== null) return { text: countText(file, query, facts), facts: found, table }
  const result = value === null ? 'there are no numbers to compute with' : `the ${name} is ${formatNumber(value)}`
  return { text: `${scope(file, query, facts)}, ${result}.`, facts: found, table }
}

function countText(file: string, { filters }: TableQuery, { rows, total }: TableFacts): string {
  if (filters.length === 0) return `${file} has ${counted(rows, 'row')}.`
  const share = total === 0 ? '' : ` (${formatNumber((100 * rows) / total)}%)`
  return `${rows} of the ${counted(total, 'row')} in ${file} match: ${conditions(filters)}${share}.`
}

function groups(file: string, query: TableQuery, facts: TableFacts): TableAnswer {
  const by = groupName(query.group!)
  const rows = facts.groups!.map(({ key, value }) => ({ label: labelOf(query.group!, key), value }))
  const shown = rows.slice(0, query.rank ? Math.max(query.rank.limit, query.rank.limit === 1 ? 5 : 0) : MAX_LISTED)
  const left = facts.groupCount! - shown.length
  const more = left > 0 && !query.rank ? `\n\n${left} more not listed.` : ''
  return {
    text: `${scope(file, query, facts)}, ${headline(query, rows, by)}:\n\n${textChart(shown)}${more}`,
    facts: groupFacts(query, rows, by),
    table: { header: [by, measureName(query)], rows: rows.map(({ label, value }) => [label, value]) },
  }
}

interface Row {
  readonly label: string
  readonly value: number
}

function headline(query: TableQuery, rows: readonly Row[], by: string): string {
  const name = measureName(query)
  const { low, high } = extremes(rows)
  if (!query.rank) {
    return `the ${name} by ${by} is highest for ${high.label} (${formatNumber(high.value)}) and lowest for ${low.label} (${formatNumber(low.value)})`
  }
  const { direction, limit } = query.rank
  if (limit > 1) return `the ${limit} with the ${direction} ${name}, by ${by}`
  const first = rows[0]!
  const extreme = query.op === (direction === 'highest' ? 'max' : 'min')
  const tied = rows.filter(({ value }) => value === first.value)
  const names =
    tied.length > 5 ? `${first.label} and ${tied.length - 1} others` : listed(tied.map(({ label }) => label))
  return `${names} ${tied.length > 1 ? 'have' : 'has'} the ${direction} ${extreme ? query.column : name}: ${formatNumber(first.value)}. By ${by}`
}

function extremes(rows: readonly Row[]): { readonly low: Row; readonly high: Row } {
  const sorted = [...rows].sort((a, b) => a.value - b.value)
  return { low: sorted[0]!, high: sorted.at(-1)! }
}

function factOf({ op, column }: TableQuery, value: number): Fact {
  return { names: [...NAMES[op], ...(column ? wordsOf(column) : [])], value }
}

function groupFacts(query: TableQuery, rows: readonly Row[], by: string): Fact[] {
  const best = query.rank ? rows[0]! : extremes(rows).high
  const { column } = query.group!
  const words = [...wordsOf(by), ...wordsOf(column)]
  const list = rows.map(({ label, value }) => ({ name: label, [column]: label, [by]: label, value, [query.op]: value }))
  return [
    factOf(query, best.value),
    { names: [...words, 'name', 'group', 'best', 'top', 'highest'], value: best.label },
    { names: ['groups', 'list', 'rows', 'results', 'items', ...words], value: list },
  ]
}

function wordsOf(name: string): string[] {
  return name.toLowerCase().split(/[^a-z0-9]+/)
}

function scope(file: string, { filters }: TableQuery, { rows, total }: TableFacts): string {
  return filters.length === 0
    ? `In ${file} (${counted(rows, 'row')})`
    : `In ${file}, over the ${rows} of ${counted(total, 'row')} where ${conditions(filters)}`
}

const MONTHS = 'January February March April May June July August September October November December'.split(' ')
const WEEKDAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split(' ')

function labelOf({ part }: Group, key: string | number): string {
  if (part === 'month') return MONTHS[Number(key) - 1] ?? String(key)
  if (part === 'weekday') return WEEKDAYS[Number(key)] ?? String(key)
  return part === 'hour' ? `${String(key).padStart(2, '0')}:00` : String(key)
}
