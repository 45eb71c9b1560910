/** Python that looks at a data file before anything is computed: what it is, its columns, its first lines. */
import { ACCESS_LINE, imports, loader, NUMBER, py, TEXT, WHEN } from './python.ts'
import type { Column, Profile, Source } from './task.ts'

/** Values of a text column are listed up to this many. */
const MAX_VALUES = 40

const PROFILE = `def profile(rows, asked):
    names = list(dict.fromkeys(name for row in rows[:1000] for name in row if name is not None))
    columns, mentions = [], []
    for name in names:
        cells = [text(row.get(name)) for row in rows]
        filled = [cell for cell in cells if cell and cell.lower() not in ("na", "n/a", "nan", "null", "none", "-")]
        distinct = sorted(set(filled))
        numbers = sum(number(cell) is not None for cell in filled)
        kind = "text"
        if filled and numbers >= 0.9 * len(filled):
            kind = "number"
        elif filled and sum(when(cell) is not None for cell in filled[:500]) >= 0.95 * len(filled[:500]):
            kind = "date"
        if kind == "text":
            mentions += [{"column": name, "value": cell} for cell in distinct if cell.lower() in asked]
        few = kind == "text" and len(distinct) <= ${MAX_VALUES} and all(len(cell) <= 60 for cell in distinct)
        columns.append({"name": name, "type": kind, "distinct": len(distinct), "values": distinct if few else []})
    return {"rows": len(rows), "columns": columns, "mentions": mentions[:20]}
`

function program(names: readonly string[], parts: readonly string[]): string {
  return `${imports('json', 'math', ...names)}\nfrom datetime import datetime\n\n${[TEXT, NUMBER, WHEN, PROFILE, ...parts].join('\n')}`
}

function asked(phrases: readonly string[]): string {
  return `asked = set(${py(phrases)})\n`
}

export function lookAtTable(file: string, phrases: readonly string[]): string {
  return program(
    ['csv'],
    [
      asked(phrases),
      `with open(${py(file)}, newline="", encoding="utf-8-sig", errors="replace") as file:
    lines = file.read().splitlines()
first = lines[0] if lines else ""
delimiter = max(",;\\t|", key=first.count)
for line in lines[:4]:
    print(line[:200])
rows = list(csv.DictReader(lines, delimiter=delimiter))
print(json.dumps({"kind": "csv", "delimiter": delimiter, **profile(rows, asked)}))
`,
    ],
  )
}

export function lookAtJson(file: string, phrases: readonly string[]): string {
  const flat = loader(file, { kind: 'jsonl' }).code.split('\nwith open')[0]!
  return program(
    [],
    [
      flat,
      asked(phrases),
      `with open(${py(file)}, encoding="utf-8-sig") as file:
    content = file.read()
try:
    data, kind = json.loads(content), "json"
except json.JSONDecodeError:
    data, kind = [json.loads(line) for line in content.splitlines() if line.strip()], "jsonl"

def records(value, path=()):
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return [(path, value)]
    if isinstance(value, dict) and len(path) < 3:
        return [found for key, inner in value.items() for found in records(inner, path + (key,))]
    return []

print(json.dumps(data, ensure_ascii=False)[:300])
found = max(records(data), key=lambda item: (any(str(key).lower() in asked for key in item[0]), len(item[1])), default=((), []))
keys = list(data)[:50] if isinstance(data, dict) else []
size = len(data) if isinstance(data, (dict, list)) else 1
rows = [flat(record) for record in found[1]]
print(json.dumps({"kind": kind, "top": type(data).__name__, "keys": keys, "size": size, "path": list(found[0]), **profile(rows, asked)}))
`,
    ],
  )
}

export function lookAtText(file: string, phrases: readonly string[]): string {
  return program(
    ['re', 'collections'],
    [
      ACCESS_LINE,
      asked(phrases),
      `with open(${py(file)}, encoding="utf-8-sig", errors="replace") as file:
    content = file.read()
lines = content.splitlines()
for line in lines[:4]:
    print(line[:200])
filled = [line for line in lines if line.strip()]
rows = [row for row in map(request, filled) if row]
levels = collections.Counter(match[0] for line in lines if (match := re.search(r"\\b(FATAL|CRITICAL|ERROR|WARNING|WARN|INFO|DEBUG|TRACE)\\b", line)))
facts = {"kind": "text", "lines": len(lines), "words": len(re.findall(r"\\w+", content)), "characters": len(content), "levels": dict(levels.most_common())}
if filled and len(rows) >= 0.8 * len(filled):
    facts = {**facts, "kind": "access_log", **profile(rows, asked)}
print(json.dumps(facts))
`,
    ],
  )
}

/** The profile in a look's facts; undefined where there is no table in the file. */
export function profileOf(facts: Readonly<Record<string, unknown>>): Profile | undefined {
  const columns = facts.columns as Column[] | undefined
  if (!Array.isArray(columns) || columns.length === 0) return undefined
  return {
    source: sourceOf(facts),
    rows: facts.rows as number,
    columns,
    mentions: facts.mentions as Profile['mentions'],
  }
}

function sourceOf(facts: Readonly<Record<string, unknown>>): Source {
  if (facts.kind === 'csv') return { kind: 'csv', delimiter: facts.delimiter as string }
  if (facts.kind === 'json') return { kind: 'json', path: facts.path as string[] }
  return facts.kind === 'jsonl' ? { kind: 'jsonl' } : { kind: 'access_log' }
}
