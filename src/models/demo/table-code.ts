/** A table query as a Python program, no longer than the query needs. */
import { imports, loader, NUMBER, PART, py, TEXT, WHEN } from './python.ts'
import type { Filter, Group, Measure, Operation, Profile, TableQuery } from './task.ts'

/** Groups printed; how many there are is printed too. */
const MAX_GROUPS = 200

const OPERATION: Readonly<Record<Operation, string>> = {
  count: 'len(part)',
  mean: 'statistics.fmean(values) if values else None',
  sum: 'math.fsum(values) if values else None',
  min: 'min(values, default=None)',
  max: 'max(values, default=None)',
  median: 'statistics.median(values) if values else None',
  std: 'statistics.stdev(values) if len(values) > 1 else None',
  unique: 'len(set(values))',
}

export function tableCode(file: string, profile: Profile, query: TableQuery): string {
  const load = loader(file, profile.source)
  const body = bodyOf(query)
  const filters = query.filters.map(condition)
  const dates =
    query.groups.some((group) => group.part) ||
    query.filters.some((filter) => filter.kind === 'part' || filter.kind === 'date')
  const needsDate = dates || profile.source.kind === 'access_log'
  const parts = [
    `${imports('json', 'math', 'statistics', ...load.imports, ...(query.kind === 'describe' ? ['collections'] : []))}\n${needsDate ? 'from datetime import datetime\n' : ''}`,
    TEXT,
    NUMBER,
    ...(dates ? [WHEN] : []),
    `${load.code}total = len(rows)\n`,
    ...(filters.length > 0 ? [`rows = [row for row in rows if ${filters.join(' and ')}]\n`] : []),
    body,
  ]
  return parts.join('\n')
}

function bodyOf(query: TableQuery): string {
  switch (query.kind) {
    case 'measure':
      if (query.groups.length > 0) return grouped(query)
      return query.rank && query.measures.some(({ column }) => column) ? topRows(query) : overall(query)
    case 'describe':
      return DESCRIBE
    case 'histogram':
      return histogram(query.measures[0]!.column!)
    case 'correlation':
      return correlation(query.measures[0]!.column!, query.measures[1]!.column!)
    default:
      return query.kind satisfies never
  }
}

function condition(filter: Filter): string {
  const cell = `row.get(${py(filter.column)})`
  switch (filter.kind) {
    case 'compare':
      return `(value := number(${cell})) is not None and value ${filter.op} ${filter.value}`
    case 'text': {
      const values = filter.values.map((value) => value.toLowerCase())
      const test =
        values.length === 1
          ? `${filter.not ? '!=' : '=='} ${py(values[0]!)}`
          : `${filter.not ? 'not in' : 'in'} ${py(values)}`
      return `text(${cell}).lower() ${test}`
    }
    case 'date':
      return `(date := when(${cell})) is not None and date.strftime("%Y-%m-%d") ${filter.op} ${py(filter.value)}`
    case 'contains':
      return `${py(filter.value.toLowerCase())} in text(${cell}).lower()`
    case 'part':
      return `(date := when(${cell})) is not None and date.${filter.part} == ${filter.value}`
    default:
      return filter satisfies never
  }
}

/** A function from rows to the list of results, one a measure. */
function measureFunction(measures: readonly Measure[]): string {
  const lines = ['def measure(part):', '    results = []']
  let loaded: string | undefined
  for (const { op, column } of measures) {
    const key = op === 'unique' ? `text ${column}` : column
    if (column !== undefined && key !== loaded) {
      const cell = `row.get(${py(column)})`
      lines.push(
        op === 'unique'
          ? `    values = [cell for row in part if (cell := text(${cell}))]`
          : `    values = [value for row in part if (value := number(${cell})) is not None]`,
      )
      loaded = key
    }
    const used = column === undefined ? 'len(part)' : 'len(values)'
    lines.push(
      `    results.append({"op": ${py(op)}, "column": ${column === undefined ? 'None' : py(column)}, "value": ${OPERATION[op]}, "used": ${used}})`,
    )
  }
  return `${lines.join('\n')}\n    return results\n`
}

function overall(query: TableQuery): string {
  const unique = query.measures.find(({ op }) => op === 'unique')
  const list = unique
    ? `, "list": sorted({cell for row in rows if (cell := text(row.get(${py(unique.column!)})))})[:50]`
    : ''
  return `${measureFunction(query.measures)}
print(json.dumps({"rows": len(rows), "total": total, "values": measure(rows)${list}}))
`
}

function keyOf(group: Group): string {
  const cell = `row.get(${py(group.column)})`
  return group.part ? `(${PART[group.part]} if (date := when(${cell})) else None)` : `text(${cell}) or None`
}

function grouped(query: TableQuery): string {
  const keys = query.groups.map(keyOf).join(', ')
  const order = query.rank
    ? `order = sorted(results, key=lambda item: item["values"][0]["value"], reverse=${query.rank.direction === 'highest' ? 'True' : 'False'})`
    : ORDER
  return `${measureFunction(query.measures)}
groups = {}
for row in rows:
    key = (${keys},)
    if None not in key:
        groups.setdefault(key, []).append(row)

results = [{"key": list(key), "rows": len(part), "values": measure(part)} for key, part in groups.items()]
results = [item for item in results if item["values"][0]["value"] is not None]
${order}
print(json.dumps({"rows": len(rows), "total": total, "count": len(order), "groups": order[:${MAX_GROUPS}]}))
`
}

/** Keys in their own order: numbers by size, words by the alphabet. */
const ORDER = `def natural(item):
    return [(0, value, "") if (value := number(part)) is not None else (1, 0, str(part)) for part in item["key"]]

order = sorted(results, key=natural)`

function topRows(query: TableQuery): string {
  const column = query.measures.find((measure) => measure.column)!.column!
  return `rows = [row for row in rows if number(row.get(${py(column)})) is not None]
rows.sort(key=lambda row: number(row[${py(column)}]), reverse=${query.rank!.direction === 'highest' ? 'True' : 'False'})
top = [{name: text(cell) for name, cell in row.items() if name is not None} for row in rows[:${query.rank!.limit}]]
print(json.dumps({"rows": len(rows), "total": total, "column": ${py(column)}, "top": top}))
`
}

const DESCRIBE = `columns = []
for name in dict.fromkeys(name for row in rows for name in row if name is not None):
    cells = [cell for row in rows if (cell := text(row.get(name)))]
    values = [value for cell in cells if (value := number(cell)) is not None]
    facts = {"name": name, "filled": len(cells), "distinct": len(set(cells))}
    if cells and len(values) >= 0.9 * len(cells):
        facts.update(mean=statistics.fmean(values), min=min(values), max=max(values))
    elif cells:
        top, times = collections.Counter(cells).most_common(1)[0]
        facts.update(top=top[:60], times=times, first=min(cells)[:60], last=max(cells)[:60])
    columns.append(facts)
print(json.dumps({"rows": len(rows), "total": total, "columns": columns}))
`

function histogram(column: string): string {
  return `values = [value for row in rows if (value := number(row.get(${py(column)}))) is not None]
low, high = min(values), max(values)
width = (high - low) / 10 or 1.0
bins = [0] * 10
for value in values:
    bins[min(9, int((value - low) / width))] += 1
print(json.dumps({"rows": len(values), "total": total, "column": ${py(column)}, "low": low, "width": width, "bins": bins, "mean": statistics.fmean(values)}))
`
}

function correlation(a: string, b: string): string {
  return `pairs = [(x, y) for row in rows if (x := number(row.get(${py(a)}))) is not None and (y := number(row.get(${py(b)}))) is not None]
xs, ys = zip(*pairs)
print(json.dumps({"rows": len(pairs), "total": total, "columns": [${py(a)}, ${py(b)}], "correlation": statistics.correlation(xs, ys)}))
`
}
