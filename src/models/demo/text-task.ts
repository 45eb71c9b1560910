/** Questions about plain text and logs, after the look. */
import { answer, failed, runPython, writeText } from './moves.ts'
import { counted, textChart } from './numbers.ts'
import { readFacts } from './python.ts'
import type { Fact, Question, Work } from './task.ts'
import { readTextQuery, type TextQuery, textCode } from './text-code.ts'

interface Look {
  readonly lines: number
  readonly words: number
  readonly characters: number
  readonly levels: Readonly<Record<string, number>>
}

interface Counts {
  readonly lines: number
  readonly matching: number
  readonly containing: number
  readonly occurrences: number
  readonly samples: readonly (readonly [number, string])[]
  readonly times: readonly (readonly [string, number])[]
}

interface Tops {
  readonly lines: number
  readonly chosen: number
  readonly different: number
  readonly top: readonly (readonly [string, number])[]
}

export function* textTask(file: string, question: Question, look: unknown, tools: ReadonlySet<string>): Work {
  const seen = look as Look
  const query = readTextQuery(
    `${question.text}${question.before ? ` ${question.before}` : ''}`,
    Object.keys(seen.levels),
  )
  if (query.kind === 'describe')
    return answer('The look told what there is to say.', describe(file, seen), lookFacts(seen))
  if (query.kind === 'size') {
    return answer(
      'The look counted that already.',
      `${file} has ${counted(seen[query.unit], query.unit.slice(0, -1))}.`,
      [{ names: ['count', 'number', query.unit], value: seen[query.unit] }],
    )
  }
  const output = yield runPython(thought(seen, query), textCode(file, query))
  const facts = readFacts(output)
  if (!facts) return failed(`search ${file}`, output)
  const told =
    query.kind === 'count'
      ? tellCount(file, query, facts as unknown as Counts)
      : tellTop(file, query, facts as unknown as Tops)
  if (!question.save) return answer('I have the counts that were asked for.', told.text, told.facts)
  const written = yield* writeText(tools, question.save, `${told.text}\n`)
  if (!written.done) return failed(`write ${question.save}`, written.output)
  return answer('Counted and saved.', `${told.text}\n\nThe result is saved in ${question.save}.`, told.facts)
}

function thought(seen: Look, query: Extract<TextQuery, { kind: 'count' | 'top' }>): string {
  const size = `${counted(seen.lines, 'line')} of text.`
  if (query.kind === 'top') return `${size} I count ${KINDS[query.what]} and keep the ${query.limit} most frequent.`
  return `${size} I count the lines ${query.level ? `of level ${query.level.replace('|', ' or ')}` : `that contain "${query.needle}"`}.`
}

const KINDS = {
  words: 'words',
  addresses: 'IP addresses',
  lines: 'messages (numbers and times set aside)',
  urls: 'web addresses',
} as const

function describe(file: string, seen: Look): string {
  const levels = Object.entries(seen.levels)
  const base = `${file} is text: ${counted(seen.lines, 'line')}, ${counted(seen.words, 'word')}, ${counted(seen.characters, 'character')}.`
  return levels.length === 0
    ? base
    : `${base} Lines by level:\n\n${textChart(levels.map(([label, value]) => ({ label, value })))}`
}

function lookFacts(seen: Look): Fact[] {
  return [
    { names: ['lines', 'count', 'number'], value: seen.lines },
    { names: ['words'], value: seen.words },
    { names: ['characters'], value: seen.characters },
    ...Object.entries(seen.levels).map(([level, count]) => ({
      names: [level.toLowerCase(), `${level.toLowerCase()}s`],
      value: count,
    })),
  ]
}

function tellCount(file: string, query: Extract<TextQuery, { kind: 'count' }>, counts: Counts) {
  const one = counts.matching === 1
  const what = query.level
    ? `${one ? 'has' : 'have'} the level ${query.level.replace('|', ' or ')}`
    : `${one ? 'contains' : 'contain'} "${query.needle}"`
  const other = query.level
    ? counts.containing === counts.matching
      ? ''
      : ` (The word itself stands in ${counted(counts.containing, 'line')}.)`
    : counts.occurrences === counts.matching
      ? ''
      : ` It stands there ${counted(counts.occurrences, 'time')} in all.`
  const samples = counts.samples.map(([at, line]) => `    ${at}: ${line}`).join('\n')
  const times =
    counts.times.length > 0
      ? `\n\nBy ${query.per}:\n\n${textChart(counts.times.map(([label, value]) => ({ label, value })))}`
      : ''
  const shown = samples ? `\n\n${counts.samples.length > 1 ? 'The first and the last' : 'It is'}:\n\n${samples}` : ''
  return {
    text: `${counts.matching} of the ${counted(counts.lines, 'line')} in ${file} ${what}.${other}${times}${shown}`,
    facts: [
      { names: ['count', 'number', 'lines', 'matching', query.needle, `${query.needle}s`], value: counts.matching },
      { names: ['occurrences', 'times'], value: counts.occurrences },
      { names: ['total'], value: counts.lines },
    ] satisfies Fact[],
  }
}

function tellTop(file: string, query: Extract<TextQuery, { kind: 'top' }>, tops: Tops) {
  const rows = tops.top.map(([label, value]) => ({ label, value }))
  const level = query.level ? ` on lines of level ${query.level.replace('|', ' or ')}` : ''
  // Messages are longer than a chart's label: a list keeps them whole.
  const list =
    query.what === 'lines' || query.what === 'urls'
      ? rows.map(({ label, value }) => `- ${value} × ${label}`).join('\n')
      : rows.length > 0
        ? textChart(rows)
        : ''
  const common = query.what === 'words' ? ' (common words such as "the" left out)' : ''
  return {
    text:
      rows.length === 0
        ? `I found no ${KINDS[query.what]} in ${file}.`
        : `The ${rows.length} most frequent ${KINDS[query.what]} in ${file}${level}${common}, of ${tops.different} different ones:\n\n${list}`,
    facts: [
      { names: ['count', 'number', 'value'], value: rows[0]?.value ?? 0 },
      { names: ['name', 'top', 'word', 'most', 'ip', 'address', 'message'], value: rows[0]?.label ?? '' },
      {
        names: ['list', 'items', 'results', query.what],
        value: rows.map(({ label, value }) => ({ name: label, word: label, value, count: value })),
      },
    ] satisfies Fact[],
  }
}
