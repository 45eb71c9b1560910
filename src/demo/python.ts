/**
 * Pieces of the Python programs that the demo model writes. They use the standard library only, and print their results
 * as one JSON line at the end.
 */
import type { DatePart, Source } from './task.ts'

/** A Python literal. JSON escapes lone surrogates, so the program is always valid UTF-8. */
export function py(value: string): string {
  return JSON.stringify(value)
}

/** The last line of a program's output that is a JSON object. Undefined if there is none, or if it was truncated. */
export function readFacts(output: string): Readonly<Record<string, unknown>> | undefined {
  const line = output.split('\n').findLast((text) => text.startsWith('{'))
  try {
    return line === undefined ? undefined : JSON.parse(line)
  } catch {
    return undefined
  }
}

export const IMPORTS = `import collections, csv, json, math, os, re, statistics
from datetime import datetime
`

export const CELLS = `def text(cell):
    return "" if cell is None else str(cell).strip()

def number(cell):
    try:
        value = float(text(cell).replace(",", "").lstrip("$€£").rstrip("%"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None

def when(cell):
    for form in (None, "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d"):
        try:
            return datetime.strptime(text(cell), form) if form else datetime.fromisoformat(text(cell))
        except ValueError:
            pass
    return None
`

/** Reads lines in the common and combined log formats. */
export const ACCESS_LOG = `LINE = re.compile(r'(\\S+) \\S+ \\S+ \\[([^\\]]+)\\] "(\\S+) (\\S+)[^"]*" (\\d{3}) (\\d+|-)')

def request(line):
    match = LINE.match(line)
    if not match:
        return None
    row = dict(zip(("ip", "time", "method", "path", "status", "bytes"), match.groups()))
    row["time"] = datetime.strptime(row["time"][:20], "%d/%b/%Y:%H:%M:%S").isoformat(" ")
    row["path"] = row["path"].split("?")[0]
    return row
`

/** A date's part as a key that sorts. */
export const PART: Readonly<Record<DatePart, string>> = {
  year: 'date.year',
  month: 'date.month',
  weekday: 'date.weekday()',
  day: 'date.strftime("%Y-%m-%d")',
  hour: 'date.hour',
}

/** Lines that read the table into `rows`, a list of dicts. */
export function loader(file: string, source: Source): string {
  const open = `with open(${py(file)}, newline="", encoding="utf-8-sig", errors="replace") as file:`
  return source.kind === 'csv'
    ? `${open}\n    rows = list(csv.DictReader(file, delimiter=${py(source.delimiter)}))\n`
    : `${ACCESS_LOG}\n${open}\n    rows = [row for row in map(request, file) if row]\n`
}
