/** A table query as a Python program. */
import { CELLS, IMPORTS, loader, PART, py } from './python.ts'
import type { Filter, Group, Operation, Source, TableQuery } from './task.ts'

/** Groups in the program's output. The number of all groups is in it as well. */
const MAX_GROUPS = 200

const OPERATION: Readonly<Record<Operation, string>> = {
  count: 'len(part)',
  mean: 'statistics.fmean(values) if values else None',
  sum: 'math.fsum(values) if values else None',
  min: 'min(values, default=None)',
  max: 'max(values, default=None)',
  median: 'statistics.median(values) if values else None',
}

/** Results that the program prints. */
export interface TableFacts {
  /** Rows in the table, and rows that match the filters. */
  readonly total: number
  readonly rows: number
  /** Null if no row has a number. */
  readonly value?: number | null
  readonly groupCount?: number
  readonly groups?: readonly { readonly key: string | number; readonly value: number }[]
}

export function tableCode(file: string, source: Source, query: TableQuery): string {
  const { op, column, group, filters } = query
  const values =
    column === undefined
      ? ''
      : `    values = [value for row in part if (value := number(row.get(${py(column)}))) is not None]\n`
  return `${IMPORTS}
${CELLS}
${loader(file, source)}
total = len(rows)
${filters.map((filter) => `rows = [row for row in rows if ${condition(filter)}]\n`).join('')}
def measure(part):
${values}    return ${OPERATION[op]}

facts = {"total": total, "rows": len(rows)}
${group ? grouped(group, query) : 'facts["value"] = measure(rows)\n'}print(json.dumps(facts))
`
}

function condition(filter: Filter): string {
  const cell = `row.get(${py(filter.column)})`
  return filter.kind === 'value'
    ? `text(${cell}) == ${py(filter.value)}`
    : `(date := when(${cell})) is not None and date.year == ${filter.value}`
}

function grouped({ column, part }: Group, { rank }: TableQuery): string {
  const cell = `row.get(${py(column)})`
  const key = part ? `${PART[part]} if (date := when(${cell})) else None` : `text(${cell}) or None`
  const order = rank
    ? `results.sort(key=lambda item: item["value"], reverse=${rank.direction === 'highest' ? 'True' : 'False'})`
    : 'results.sort(key=lambda item: (0, number(item["key"]), "") if number(item["key"]) is not None else (1, 0, item["key"]))'
  return `groups = {}
for row in rows:
    key = ${key}
    if key is not None:
        groups.setdefault(key, []).append(row)
results = [{"key": key, "value": measure(part)} for key, part in groups.items()]
results = [item for item in results if item["value"] is not None]
${order}
facts.update(groupCount=len(results), groups=results[:${MAX_GROUPS}])
`
}
