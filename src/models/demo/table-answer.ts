/** The results of a table query in words, with the numbers that they cite. */
import { counted, formatNumber, listed, textChart } from './numbers.ts'
import { conditionsOf, groupName, labelOf, phraseOf } from './phrases.ts'
import type { Fact, Measure, TableQuery } from './task.ts'

interface Value {
  readonly op: Measure['op']
  readonly column: string | null
  readonly value: number | null
  readonly used: number
}

/** What table-code.ts prints. */
export interface TableFacts {
  readonly rows: number
  readonly total: number
  readonly values?: readonly Value[]
  readonly list?: readonly string[]
  readonly count?: number
  readonly groups?: readonly {
    readonly key: readonly (string | number)[]
    readonly rows: number
    readonly values: readonly Value[]
  }[]
  readonly top?: readonly Readonly<Record<string, string>>[]
  readonly column?: string
  readonly columns?: readonly unknown[]
  readonly low?: number
  readonly width?: number
  readonly bins?: readonly number[]
  readonly mean?: number
  readonly correlation?: number
}

export interface Told {
  readonly text: string
  readonly facts: readonly Fact[]
  /** What a chart or a saved file holds. */
  readonly table: { readonly header: readonly string[]; readonly rows: readonly (readonly (string | number)[])[] }
}

/** Groups that an answer lists before it says "and so on". */
const MAX_LISTED = 31

export function tellTable(file: string, query: TableQuery, facts: TableFacts): Told {
  const told = tell(file, query, facts)
  return query.assumed.length === 0 ? told : { ...told, text: `${told.text}\n\n${query.assumed.join(' ')}` }
}

function tell(file: string, query: TableQuery, facts: TableFacts): Told {
  if (facts.rows === 0) return nothing(file, query, facts)
  if (query.kind === 'describe') return tellDescription(file, facts)
  if (query.kind === 'histogram') return tellHistogram(file, query, facts)
  if (query.kind === 'correlation') return tellCorrelation(file, query, facts)
  if (facts.groups) return tellGroups(file, query, facts)
  return facts.top ? tellTop(file, query, facts) : tellValues(file, query, facts)
}

const NAMES: Readonly<Record<Measure['op'], readonly string[]>> = {
  count: ['count', 'number', 'rows', 'n', 'total'],
  mean: ['mean', 'average', 'avg'],
  sum: ['sum', 'total'],
  min: ['min', 'minimum', 'lowest'],
  max: ['max', 'maximum', 'highest'],
  median: ['median'],
  std: ['std', 'standard', 'deviation', 'stdev'],
  unique: ['unique', 'distinct', 'different', 'count'],
}

function factOf(value: Value): Fact[] {
  return value.value === null
    ? []
    : [{ names: [...NAMES[value.op], ...(value.column?.toLowerCase().split(/[^a-z0-9]+/) ?? [])], value: value.value }]
}

function scope(file: string, query: TableQuery, facts: TableFacts): string {
  const conditions = conditionsOf(query.filters)
  return conditions
    ? `In ${file}, over the ${facts.rows} of ${counted(facts.total, 'row')} where ${conditions}`
    : `In ${file} (${counted(facts.rows, 'row')})`
}

function nothing(file: string, query: TableQuery, facts: TableFacts): Told {
  const conditions = conditionsOf(query.filters)
  const text = conditions
    ? `0 of the ${counted(facts.total, 'row')} in ${file} match: ${conditions}.`
    : `${file} has no rows.`
  return { text, facts: [{ names: ['count', 'number', 'rows'], value: 0 }], table: { header: ['rows'], rows: [[0]] } }
}

function tellValues(file: string, query: TableQuery, facts: TableFacts): Told {
  const values = facts.values ?? []
  const table = { header: ['measure', 'value'], rows: values.map((value) => [phraseOf(value), value.value ?? '']) }
  const told = { facts: values.flatMap(factOf), table }
  const [first] = values
  if (values.length === 1 && first?.op === 'count') return { ...told, text: countText(file, query, facts) }
  if (values.length === 1 && first?.op === 'unique') {
    const list = facts.list ?? []
    const names = list.length > 0 ? `: ${list.join(', ')}${first.value! > list.length ? ', …' : ''}` : ''
    return {
      ...told,
      text: `${scope(file, query, facts)}, ${first.column} has ${counted(first.value ?? 0, 'different value')}${names}.`,
    }
  }
  const missing = values.find((value) => value.used < facts.rows && value.column)
  const note = missing
    ? ` ${counted(facts.rows - missing.used, 'row')} without a number in ${missing.column} left out.`
    : ''
  const said = values.map((value) => `the ${phraseOf(value)} is ${show(value.value)}`)
  if (values.length <= 3) return { ...told, text: `${scope(file, query, facts)}, ${listed(said)}.${note}` }
  const lines = values.map((value) => `- ${phraseOf(value)}: ${show(value.value)}`)
  return { ...told, text: `${scope(file, query, facts)}:\n\n${lines.join('\n')}${note ? `\n\n${note.trim()}` : ''}` }
}

function countText(file: string, query: TableQuery, facts: TableFacts): string {
  const conditions = conditionsOf(query.filters)
  if (!conditions) return `${file} has ${counted(facts.rows, 'row')}.`
  const share = formatNumber((100 * facts.rows) / facts.total)
  return `${facts.rows} of the ${counted(facts.total, 'row')} in ${file} match: ${conditions} (${share}%).`
}

function tellGroups(file: string, query: TableQuery, facts: TableFacts): Told {
  const groups = facts.groups!.map((group) => ({
    label: group.key.map((key, i) => labelOf(query.groups[i]!, key)).join(', '),
    values: group.values,
    rows: group.rows,
  }))
  const by = listed(query.groups.map(groupName))
  const shown = groups.slice(0, query.rank ? Math.max(query.rank.limit, query.rank.limit === 1 ? 5 : 0) : MAX_LISTED)
  const measures = groups[0]?.values ?? []
  const table = {
    header: [by, ...measures.map(phraseOf)],
    rows: groups.map((group) => [group.label, ...group.values.map(({ value }) => value ?? '')]),
  }
  const rest = (facts.count ?? groups.length) - shown.length
  const more = rest > 0 && !query.rank ? `\n\n${rest} more not listed.` : ''
  const list =
    measures.length === 1
      ? textChart(shown.map(({ label, values }) => ({ label, value: values[0]!.value ?? 0 })))
      : markdown(table.header, table.rows.slice(0, shown.length))
  return {
    text: `${scope(file, query, facts)}, ${headline(query, groups, by)}:\n\n${list}${more}`,
    facts: groupFacts(query, groups, by),
    table,
  }
}

interface Labelled {
  readonly label: string
  readonly values: readonly Value[]
}

function headline(query: TableQuery, groups: readonly Labelled[], by: string): string {
  const [first] = groups
  if (!first) return `there is nothing to group by ${by}`
  const measure = first.values[0]!
  if (query.rank) {
    const tied = groups.filter((group) => group.values[0]!.value === measure.value)
    const names = tied.length > 1 && tied.length <= 5 ? listed(tied.map(({ label }) => label)) : first.label
    const extreme = measure.op === (query.rank.direction === 'highest' ? 'max' : 'min')
    const what = `${query.rank.direction} ${extreme ? measure.column : phraseOf(measure)}`
    const several = tied.length > 1 && tied.length <= 5
    return query.rank.limit === 1
      ? `${names} ${several ? 'have' : 'has'} the ${what}: ${show(measure.value)}. By ${by}`
      : `the ${query.rank.limit} with the ${what}, by ${by}`
  }
  const [low, high] = extremes(groups)
  if (groups.length === 1) return `the ${phraseOf(measure)} for ${first.label} is ${show(measure.value)}`
  return `the ${phraseOf(measure)} by ${by} is highest for ${high.label} (${show(high.values[0]!.value)}) and lowest for ${low.label} (${show(low.values[0]!.value)})`
}

function extremes(groups: readonly Labelled[]): readonly [Labelled, Labelled] {
  const sorted = [...groups].sort((a, b) => (a.values[0]!.value ?? 0) - (b.values[0]!.value ?? 0))
  return [sorted[0]!, sorted.at(-1)!]
}

function groupFacts(query: TableQuery, groups: readonly Labelled[], by: string): Fact[] {
  if (groups.length === 0) return []
  const best = query.rank ? groups[0]! : extremes(groups)[1]
  const words = [...by.toLowerCase().split(/[^a-z0-9]+/), ...query.groups.map(({ column }) => column.toLowerCase())]
  return [
    ...factOf(best.values[0]!),
    { names: [...words, 'name', 'group', 'best', 'top', 'highest'], value: best.label },
    {
      names: ['groups', 'list', 'rows', 'results', 'items', ...words],
      value: groups.map((group) => ({
        name: group.label,
        [query.groups[0]!.column]: group.label,
        [by]: group.label,
        value: group.values[0]!.value ?? 0,
        [group.values[0]!.op]: group.values[0]!.value ?? 0,
      })),
    },
  ]
}

function tellTop(file: string, query: TableQuery, facts: TableFacts): Told {
  // The column that was asked for and the first few others: a wide table would hide it.
  const names = Object.keys(facts.top![0] ?? {})
  const header = names.filter((name, i) => i < 7 || name === facts.column)
  const rows = facts.top!.map((row) => header.map((name) => row[name] ?? ''))
  const { direction, limit } = query.rank!
  const text = `${scope(file, query, facts)}, ${limit === 1 ? 'the row' : `the ${rows.length} rows`} with the ${direction} ${facts.column}:\n\n${markdown(header, rows)}`
  const best = facts.top![0]?.[facts.column!] ?? ''
  return { text, facts: [{ names: [facts.column!, direction, 'value'], value: Number(best) }], table: { header, rows } }
}

function tellDescription(file: string, facts: TableFacts): Told {
  const columns = facts.columns as readonly Record<string, number | string>[]
  const rows = columns.map((column) => [
    column.name ?? '',
    column.distinct ?? 0,
    facts.rows - Number(column.filled),
    'mean' in column
      ? `numbers from ${show(Number(column.min))} to ${show(Number(column.max))}, mean ${show(Number(column.mean))}`
      : 'top' in column
        ? Number(column.times) > 1
          ? `most common: ${column.top} (${column.times})`
          : `from ${column.first} to ${column.last}`
        : 'empty',
  ])
  const header = ['column', 'different values', 'empty', 'holds']
  return {
    text: `${file} has ${counted(facts.rows, 'row')} and ${counted(columns.length, 'column')}:\n\n${markdown(header, rows)}`,
    facts: [
      { names: ['count', 'rows', 'number', 'records'], value: facts.rows },
      {
        names: ['columns', 'fields'],
        value: columns.map((column) => ({ name: String(column.name), distinct: Number(column.distinct) })),
      },
    ],
    table: { header, rows },
  }
}

function tellHistogram(file: string, query: TableQuery, facts: TableFacts): Told {
  const rows = facts.bins!.map((count, i) => ({
    label: `${formatNumber(facts.low! + i * facts.width!)} to ${formatNumber(facts.low! + (i + 1) * facts.width!)}`,
    value: count,
  }))
  return {
    text: `${scope(file, query, facts)}, ${facts.column} goes from ${show(facts.low!)} to ${show(facts.low! + 10 * facts.width!)}, mean ${show(facts.mean!)}. Rows in each tenth of that range:\n\n${textChart(rows)}`,
    facts: [{ names: ['mean', 'average'], value: facts.mean! }],
    table: { header: [facts.column!, 'number of rows'], rows: rows.map(({ label, value }) => [label, value]) },
  }
}

function tellCorrelation(file: string, query: TableQuery, facts: TableFacts): Told {
  const value = facts.correlation!
  const strength = Math.abs(value) > 0.7 ? 'strong' : Math.abs(value) > 0.3 ? 'moderate' : 'weak'
  return {
    text: `${scope(file, query, facts)}, the correlation of ${listed(facts.columns as string[])} is ${formatNumber(value)}: ${strength}, ${value < 0 ? 'one falls as the other rises' : 'they rise together'}.`,
    facts: [{ names: ['correlation', 'r', 'coefficient'], value }],
    table: { header: ['correlation'], rows: [[value]] },
  }
}

function markdown(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => (typeof cell === 'number' ? formatNumber(cell) : cell.replaceAll('|', '\\|'))).join(' | ')} |`
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n')
}

function show(value: number | null): string {
  return value === null ? 'not known' : formatNumber(value)
}
