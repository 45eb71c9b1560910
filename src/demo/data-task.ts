/** A question about a data file: look at the file, compute, draw a chart if one was asked for, answer. */
import { chartCode, MAX_POINTS } from './chart-code.ts'
import { WHO } from './help.ts'
import { lookCode, profileOf } from './look-code.ts'
import { answer, failed, needs, runPython } from './moves.ts'
import { counted, listed } from './numbers.ts'
import { readFacts } from './python.ts'
import { conditions, describeResult, groupName, measureName, type TableAnswer } from './table-answer.ts'
import { type TableFacts, tableCode } from './table-code.ts'
import { readTableQuestion } from './table-question.ts'
import type { Answer, Call, Profile, TableQuery, Work } from './task.ts'

export function* dataTask(file: string, question: string, tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) return needs('code_execution', `work on ${file}`)
  const looked = yield runPython(`First I look at ${file}: its columns and what they hold.`, lookCode(file))
  const facts = readFacts(looked)
  if (!facts) return failed(`read ${file}`, looked)
  const profile = profileOf(facts)
  if (!profile) {
    return { ...answer('There is no table in it.', `${WHO} ${noTable(file, facts)}`), failed: true }
  }
  const understood = readTableQuestion(question, profile)
  if (understood.ok) return yield* tableTask(file, profile, understood.query)
  const problem = `${WHO} ${understood.problem} Ask me, for example: "${exampleFor(profile, file)}"`
  return { ...answer('I know the columns now, but I do not understand the question.', problem), failed: true }
}

function noTable(file: string, { kind, lines }: Readonly<Record<string, unknown>>): string {
  const held = kind === 'text' ? `has ${counted(lines as number, 'line')} of text` : 'has no rows'
  return `${file} ${held}. I can only compute with tables: CSV files and the access logs of web servers.`
}

function* tableTask(file: string, profile: Profile, query: TableQuery): Work {
  const computed = yield runPython(planOf(profile, query), tableCode(file, profile.source, query))
  const facts = readFacts(computed) as TableFacts | undefined
  if (!facts) return failed(`compute that over ${file}`, computed)
  const result = describeResult(file, query, facts)
  const chart = query.chart ? yield* draw(query, result) : undefined
  if (typeof chart === 'object') return chart
  const text = chart ? `${result.text}\n\n${chart}` : result.text
  return { ...answer('I have the numbers.', text, result.facts), table: result.table }
}

function planOf({ rows, columns }: Profile, query: TableQuery): string {
  const names = columns.length <= 12 ? listed(columns.map(({ name }) => name)) : counted(columns.length, 'column')
  const by = query.group ? ` by ${groupName(query.group)}` : ''
  const where = query.filters.length > 0 ? `, only where ${conditions(query.filters)}` : ''
  return `${counted(rows, 'row')} with ${names}. I compute the ${measureName(query)}${by}${where}.`
}

/** Returns a sentence about the chart, or the answer if drawing failed. */
function* draw(query: TableQuery, { table }: TableAnswer): Generator<Call, string | Answer, string> {
  const points = table.rows.flatMap(([label, value]) =>
    typeof value === 'number' ? [{ label: String(label), value }] : [],
  )
  if (points.length === 0) return 'There is nothing to draw.'
  const title = [...table.header].reverse().join(' by ')
  const style = query.group?.part && query.group.part !== 'weekday' ? 'line' : 'bar'
  const path = `outputs/${fileName(title)}.svg`
  const thought = `Now the chart, as an SVG file with ${counted(Math.min(points.length, MAX_POINTS), 'point')}.`
  const output = yield runPython(thought, chartCode({ path, title, style, points }))
  if (readFacts(output)?.file !== path) return failed('draw the chart', output)
  return `The chart is in ${path}${points.length > MAX_POINTS ? ` (the first ${MAX_POINTS} points)` : ''}.`
}

function fileName(text: string): string {
  const name = text.toLowerCase().replace(/[^a-z0-9_]+/g, '-')
  return name.replace(/^-|-$/g, '').slice(0, 60) || 'chart'
}

function exampleFor({ columns }: Profile, file: string): string {
  const number = columns.find(({ type }) => type === 'number')
  const group = columns.find(({ type, values }) => type === 'date' || values.length > 0)
  if (!number) return `How many rows are in ${file}?`
  const by = group ? ` by ${group.type === 'date' ? 'month' : group.name}` : ''
  return `What is the average ${number.name}${by} in ${file}?`
}
