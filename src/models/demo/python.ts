/**
 * Pieces of Python: how a table is read, what a cell is, and how results are printed. Standard library only. Every
 * program prints its results as one line of JSON at the end, which `readFacts` finds again.
 */
import type { DatePart, Source } from './task.ts'

/** A Python literal. Lone surrogates come out escaped, so that the program is always valid UTF-8. */
export function py(value: string | number | readonly string[]): string {
  return JSON.stringify(value)
}

/** The last line of a program's output that is a JSON object. */
export function readFacts(output: string): Readonly<Record<string, unknown>> | undefined {
  for (const line of output.split('\n').reverse()) {
    if (!line.startsWith('{')) continue
    try {
      return JSON.parse(line)
    } catch {
      // An output that was cut holds no whole line: the answer says so.
    }
  }
  return undefined
}

/** Names → the lines that import them, in one order. */
export function imports(...names: string[]): string {
  return `import ${[...new Set(names)].sort().join(', ')}`
}

export const NUMBER = `def number(cell):
    try:
        value = float(str(cell).replace(",", "").strip().lstrip("$€£").rstrip("%"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
`

export const TEXT = `def text(cell):
    return "" if cell is None else str(cell).strip()
`

export const WHEN = `def when(cell):
    cell = text(cell)
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        pass
    for form in ("%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%b %d %Y", "%d %b %Y", "%B %d, %Y", "%Y-%m", "%m/%d/%Y %H:%M"):
        try:
            return datetime.strptime(cell, form)
        except ValueError:
            pass
    return None
`

/** A date's part as a key that sorts. */
export const PART: Readonly<Record<DatePart, string>> = {
  year: 'date.year',
  month: 'date.month',
  year_month: 'date.strftime("%Y-%m")',
  weekday: 'date.weekday()',
  day: 'date.strftime("%Y-%m-%d")',
  hour: 'date.hour',
}

const FLAT = `def flat(record, prefix=""):
    row = {}
    for key, value in record.items():
        if isinstance(value, dict):
            row.update(flat(value, prefix + key + "."))
        else:
            row[prefix + key] = value if value is None or isinstance(value, (str, int, float)) else json.dumps(value)
    return row
`

/** Common and combined log format. */
export const ACCESS_LINE = `ACCESS = re.compile(r'(\\S+) \\S+ \\S+ \\[([^\\]]+)\\] "(\\S+) (\\S+)[^"]*" (\\d{3}) (\\d+|-)')

def request(line):
    match = ACCESS.match(line)
    if not match:
        return None
    row = dict(zip(("ip", "time", "method", "path", "status", "bytes"), match.groups()))
    row["time"] = datetime.strptime(row["time"][:20], "%d/%b/%Y:%H:%M:%S").isoformat(" ")
    row["path"] = row["path"].split("?")[0]
    return row
`

/** Lines that leave the table in \`rows\`, a list of dicts, and what they import. */
export function loader(file: string, source: Source): { readonly code: string; readonly imports: readonly string[] } {
  const open = `with open(${py(file)}, newline="", encoding="utf-8-sig", errors="replace") as file:`
  switch (source.kind) {
    case 'csv':
      return {
        code: `${open}\n    rows = list(csv.DictReader(file, delimiter=${py(source.delimiter)}))\n`,
        imports: ['csv'],
      }
    case 'json':
      return {
        code: `${FLAT}\n${open}\n    data = json.load(file)\nrows = [flat(record) for record in data${source.path.map((key) => `[${py(key)}]`).join('')} if isinstance(record, dict)]\n`,
        imports: [],
      }
    case 'jsonl':
      return {
        code: `${FLAT}\n${open}\n    rows = [flat(json.loads(line)) for line in file if line.strip()]\n`,
        imports: [],
      }
    case 'access_log':
      return {
        code: `${ACCESS_LINE}\n${open}\n    rows = [row for row in map(request, file) if row]\n`,
        imports: ['re'],
      }
    default:
      return source satisfies never
  }
}
