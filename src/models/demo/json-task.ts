/** Look-ups in JSON that is no table, or of one thing in it. */
import { lookupCode, readLookup } from './json-code.ts'
import { answer, failed, runPython } from './moves.ts'
import { counted, listed } from './numbers.ts'
import { readFacts } from './python.ts'
import type { Fact, Question, Work } from './task.ts'

interface Found {
  readonly path: string
  readonly type: string
  readonly size: number | null
  readonly value: unknown
}

export function* lookupTask(file: string, question: Question, look: Readonly<Record<string, unknown>>): Work {
  const lookup = readLookup(question.text)
  const keys = look.keys as readonly string[]
  const size = look.size as number
  const shape =
    look.top === 'list'
      ? `a list of ${counted(size, 'item')}`
      : `an object with ${counted(size, 'key')}${keys.length > 0 ? `: ${listed(keys)}` : ''}`
  if (
    lookup.path === undefined &&
    (lookup.words.length === 0 || /\b(keys|structure|describe|overview|look like)\b/i.test(question.text))
  ) {
    return answer('The look told what there is to say.', `${file} holds ${shape}.`, [
      { names: ['count', 'size', 'keys', 'number'], value: size },
    ])
  }
  const sought = lookup.path ? `the path ${lookup.path}` : `names like ${listed(lookup.words.slice(0, 6), 'or')}`
  const output = yield runPython(`It holds ${shape}. I look for ${sought}.`, lookupCode(file, lookup))
  const facts = readFacts(output) as { readonly count: number; readonly found: readonly Found[] } | undefined
  if (!facts) return failed(`look that up in ${file}`, output)
  if (facts.count === 0) {
    return answer('Nothing by that name is there.', `${file} has nothing at ${sought}. It holds ${shape}.`)
  }
  return answer(
    'I found it.',
    tell(file, facts.found, facts.count, /\bhow many\b|\bcount\b|\bnumber of\b/i.test(question.text)),
    facts.found.flatMap(factsOf),
  )
}

function tell(file: string, found: readonly Found[], count: number, counting: boolean): string {
  const [first] = found
  if (found.length === 1 && first) {
    if (counting && first.size !== null) return `In ${file}, ${first.path} has ${counted(first.size, 'item')}.`
    const size = first.size === null ? '' : ` (${counted(first.size, first.type === 'list' ? 'item' : 'key')})`
    return `In ${file}, ${first.path} is ${show(first.value)}${size}.`
  }
  const lines = found.map((one) => `- ${one.path}: ${show(one.value)}`)
  const more = count > found.length ? `\n\n${count - found.length} more not listed.` : ''
  return `In ${file}, ${counted(count, 'place')} fit:\n\n${lines.join('\n')}${more}`
}

function factsOf({ path, size, value }: Found): Fact[] {
  const names = ['value', ...path.toLowerCase().split(/[^a-z0-9]+/)]
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean') return [{ names, value }]
  return size === null ? [] : [{ names: [...names, 'count', 'size'], value: size }]
}

function show(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : JSON.stringify(value)
}
