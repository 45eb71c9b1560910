/** Python that looks at a file before anything is computed: its first lines, its columns and what they hold. */
import { ACCESS_LOG, CELLS, IMPORTS, py } from './python.ts'
import type { Column, Profile, Source } from './task.ts'

/** Text columns with more values than this are not listed. */
const MAX_VALUES = 40
/** Further columns are ignored: the server compares each word of a question with each column. */
const MAX_COLUMNS = 100

export function lookCode(file: string): string {
  return `${IMPORTS}
${CELLS}
${ACCESS_LOG}
def column(name, cells):
    filled = [cell for cell in map(text, cells) if cell]
    if filled and sum(number(cell) is not None for cell in filled) >= 0.9 * len(filled):
        return {"name": name, "type": "number", "values": []}
    if filled and sum(when(cell) is not None for cell in filled[:500]) >= 0.95 * len(filled[:500]):
        return {"name": name, "type": "date", "values": []}
    values = sorted(set(filled))
    few = len(values) <= ${MAX_VALUES} and all(len(value) <= 60 for value in values)
    return {"name": name, "type": "text", "values": values if few else []}

with open(${py(file)}, newline="", encoding="utf-8-sig", errors="replace") as file:
    lines = file.read().splitlines()
for line in lines[:4]:
    print(line[:200])
facts = {"kind": "text", "lines": len(lines)}
rows = []
if ${/\.(csv|tsv|tab)$/i.test(file) ? 'True' : 'False'}:
    delimiter = max(",;\\t|", key=lines[0].count) if lines else ","
    rows = list(csv.DictReader(lines, delimiter=delimiter))
    facts = {"kind": "csv", "delimiter": delimiter}
elif lines and all(map(request, lines[:100])):
    rows = [row for row in map(request, lines) if row]
    facts = {"kind": "access_log"}
names = [name for name in (rows[0] if rows else {}) if name is not None][:${MAX_COLUMNS}]
print(json.dumps({**facts, "rows": len(rows), "columns": [column(name, [row.get(name) for row in rows]) for name in names]}))
`
}

/** The table's profile. Undefined if the file holds no table. */
export function profileOf(facts: Readonly<Record<string, unknown>>): Profile | undefined {
  const columns = facts.columns as readonly Column[]
  if (columns.length === 0) return undefined
  const source: Source =
    facts.kind === 'csv' ? { kind: 'csv', delimiter: facts.delimiter as string } : { kind: 'access_log' }
  return { source, rows: facts.rows as number, columns }
}
