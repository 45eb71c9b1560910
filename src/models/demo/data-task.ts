/**
 * Questions about a data file: look at it, compute, draw and save where that was asked, answer. The look decides what
 * the file is: a table (CSV, JSON records, an access log), other JSON, or plain text.
 */
import { chartCode, MAX_POINTS } from './chart-code.ts'
import { WHO } from './help.ts'
import { lookupTask } from './json-task.ts'
import { lookAtJson, lookAtTable, lookAtText, profileOf } from './look-code.ts'
import { answer, failed, needs, runPython, writeText } from './moves.ts'
import { counted, listed } from './numbers.ts'
import { conditionsOf, groupName, phraseOf } from './phrases.ts'
import { readFacts } from './python.ts'
import { readTableQuery } from './query.ts'
import { type TableFacts, type Told, tellTable } from './table-answer.ts'
import { tableCode } from './table-code.ts'
import type { Answer, Call, Profile, Question, TableQuery, Task, Work } from './task.ts'
import { textTask } from './text-task.ts'
import { phrasesOf } from './words.ts'

type DataTask = Extract<Task, { kind: 'data' }>

export function* dataTask({ file, question }: DataTask, tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) return needs('code_execution', `work on ${file}`)
  const asked = phrasesOf(`${question.text} ${question.before ?? ''}`)
  const look = yield runPython(`First I look at ${file}: what it holds and how it is laid out.`, lookCode(file, asked))
  const facts = readFacts(look)
  if (!facts) return failed(`read ${file}`, look)
  const profile = profileOf(facts)
  if (facts.kind === 'text') return yield* textTask(file, question, facts, tools)
  const isJson = facts.kind === 'json' || facts.kind === 'jsonl'
  if (isJson && (!profile || profile.rows === 0 || isLookup(question.text)))
    return yield* lookupTask(file, question, facts)
  if (!profile) return answer('There is nothing in it to compute with.', `${file} holds no table that I can read.`)
  const understood = readTableQuery(question, profile)
  if (understood.ok) return yield* tableTask(file, question, profile, understood.query, tools)
  if (isJson) return yield* lookupTask(file, question, facts)
  return answer(
    'I know the columns now, but not what is asked of them.',
    `${WHO} ${understood.problem} Ask me, for example: "${exampleFor(profile, file)}"`,
  )
}

function lookCode(file: string, asked: readonly string[]): string {
  if (/\.(csv|tsv|tab)$/i.test(file)) return lookAtTable(file, asked)
  return /\.(json|jsonl|ndjson|geojson)$/i.test(file) ? lookAtJson(file, asked) : lookAtText(file, asked)
}

/** A dotted path, or a question for one thing with no word that computes. */
function isLookup(text: string): boolean {
  if (/[\w$-]+(?:\.[\w$-]+|\[\d+\])+/.test(text.replace(/\d+\.\d+/g, ''))) return true
  return !/\b(how many|average|mean|avg|sum|total|min|max|minimum|maximum|median|count|number of|highest|lowest|most|least|largest|smallest|\w{3,}est|who|percentage|share|top|by|per|each|plot|chart|describe|columns?|fields?|statistics|stats|summary|summarize|unique|distinct|different|deviation|histogram|overview|and)\b/i.test(
    text,
  )
}

function* tableTask(
  file: string,
  question: Question,
  profile: Profile,
  query: TableQuery,
  tools: ReadonlySet<string>,
): Work {
  const computed = yield runPython(planOf(profile, query), tableCode(file, profile, query))
  const facts = readFacts(computed) as TableFacts | undefined
  if (!facts) return failed(`compute that over ${file}`, computed)
  const told = tellTable(file, query, facts)
  const notes: string[] = []
  const problem =
    (query.chart ? yield* draw(query, told, notes) : undefined) ??
    (question.save ? yield* save(question.save, told, tools, notes) : undefined)
  if (problem) return problem
  return answer('I have the numbers that were asked for.', [told.text, ...notes].join('\n\n'), told.facts)
}

function planOf(profile: Profile, query: TableQuery): string {
  const seen = `${counted(profile.rows, 'row')} with ${profile.columns.length <= 12 ? listed(profile.columns.map(({ name }) => name)) : counted(profile.columns.length, 'column')}.`
  const where = conditionsOf(query.filters)
  const by = query.groups.length > 0 ? ` by ${listed(query.groups.map(groupName))}` : ''
  const what =
    query.kind === 'measure'
      ? `the ${listed(query.measures.map(phraseOf))}`
      : `the ${{ describe: 'overview of every column', histogram: 'distribution', correlation: 'correlation' }[query.kind]}`
  return `${seen} I compute ${what}${by}${where ? `, only where ${where}` : ''}.`
}

/** Undefined where it went well. */
function* draw(query: TableQuery, told: Told, notes: string[]): Generator<Call, Answer | undefined, string> {
  const points = told.table.rows.flatMap((row) =>
    typeof row[1] === 'number' ? [{ label: String(row[0]), value: row[1] }] : [],
  )
  if (points.length === 0) {
    notes.push('There is nothing to draw.')
    return undefined
  }
  const [along = 'group', measured = 'value'] = told.table.header
  const timed = query.groups[0]?.part && query.groups[0].part !== 'weekday'
  const path = `outputs/${slug(`${measured} by ${along}`)}.svg`
  const output = yield runPython(
    `Now the chart: ${timed ? 'a line' : 'bars'} over ${counted(Math.min(points.length, MAX_POINTS), 'point')}, as an SVG file.`,
    chartCode({ path, title: `${measured} by ${along}`, style: timed ? 'line' : 'bar', points }),
  )
  if (readFacts(output)?.file !== path) return failed('draw the chart', output)
  notes.push(`The chart is in ${path}${points.length > MAX_POINTS ? ` (the first ${MAX_POINTS} points)` : ''}.`)
  return undefined
}

function* save(
  path: string,
  told: Told,
  tools: ReadonlySet<string>,
  notes: string[],
): Generator<Call, Answer | undefined, string> {
  const { done, output } = yield* writeText(tools, path, contentFor(path, told))
  if (!done) return failed(`write ${path}`, output)
  notes.push(`The result is saved in ${path}.`)
  return undefined
}

function contentFor(path: string, { text, table }: Told): string {
  if (/\.json$/i.test(path)) {
    return `${JSON.stringify(
      table.rows.map((row) => Object.fromEntries(table.header.map((name, i) => [name, row[i]]))),
      null,
      2,
    )}\n`
  }
  if (!/\.(csv|tsv)$/i.test(path)) return `${text}\n`
  const delimiter = /\.tsv$/i.test(path) ? '\t' : ','
  const cell = (value: string | number) =>
    /[",\t\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value)
  return `${[table.header, ...table.rows].map((row) => row.map(cell).join(delimiter)).join('\n')}\n`
}

function slug(text: string): string {
  return (
    text
      .toLowerCase()
      .replace(/[^a-z0-9_]+/g, '-')
      .replace(/^-|-$/g, '')
      .slice(0, 60) || 'chart'
  )
}

function exampleFor(profile: Profile, file: string): string {
  const number = profile.columns.find((column) => column.type === 'number')
  const group =
    profile.columns.find((column) => column.type === 'text' && column.values.length > 0) ??
    profile.columns.find((column) => column.type === 'date')
  if (!number) return `How many rows are in ${file}?`
  return `What is the average ${number.name}${group ? ` by ${group.type === 'date' ? 'month' : group.name}` : ''} in ${file}?`
}
