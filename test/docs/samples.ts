/**
 * The recorded responses that the API reference shows. test/docs/examples.test.ts compares new responses with them. To
 * record again:
 *
 *     ERRAND_RECORD=1 npx vitest run --project errand test/docs/examples.test.ts -t 'in sh'
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './blocks.ts'

const FILE = join(ROOT, 'site/samples.json')
export const RECORDING = process.env.ERRAND_RECORD !== undefined

/** Responses by operation id: a stream is a string, other responses are parsed JSON. */
type Samples = Record<string, unknown>

export const kept = (): Samples => JSON.parse(readFileSync(FILE, 'utf8'))
export const keep = (samples: Samples): void => writeFileSync(FILE, `${JSON.stringify(samples, null, 2)}\n`)

/**
 * Replaces addresses and times of this machine, and keeps the first two items of a list. `places` maps each address to
 * the one shown instead.
 */
export function sampleOf(printed: string, places: Readonly<Record<string, string>>): unknown {
  let text = printed
  for (const [from, to] of Object.entries(places)) text = text.replaceAll(from, to)
  text = text
    .replaceAll(/\bint_\w{22}/g, 'int_0Wb1xYz3kJ9mQ2pR5sT7uV')
    .replaceAll(/\bprj_\w{22}/g, 'prj_0Wb1xYz3kJ9mQ2pR5sT7uV')
    .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-05-20T09:30:00.000Z')
    .replaceAll(/expires=\d+&signature=[\w-]+/g, 'expires=1779273000&signature=p1piyf7svFF3I9fC2umnJQ')
    .replaceAll(/(\\"\d+-)\w+\\"/g, '$1mf3k2p9q\\"')
  if (text.startsWith('id: ')) return text.trim()
  const value = JSON.parse(text)
  for (const [name, list] of Object.entries(value)) {
    if (Array.isArray(list) && Object.keys(value).every((key) => key === name || key === 'nextPageToken')) {
      value[name] = list.slice(0, 2)
    }
  }
  return value
}

/**
 * Paths and types of all fields. For a stream: the fields of each event type, except events that a busy machine may
 * merge.
 */
export function shapeOf(sample: unknown): string[] {
  if (typeof sample !== 'string') return [...new Set(pathsOf(sample, ''))].sort()
  const events = sample.split('\n\n').map((message) => /^event: (.*)\ndata: (.*)$/m.exec(message)!)
  const lasting = events.filter(([, name]) => name !== 'tool_output')
  return [...new Set(lasting.flatMap(([, name, data]) => pathsOf(JSON.parse(data!), name!)))].sort()
}

function pathsOf(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return [`${path}[]`, ...value.flatMap((each) => pathsOf(each, `${path}[]`))]
  if (typeof value !== 'object' || value === null) return [`${path}: ${value === null ? 'null' : typeof value}`]
  return Object.entries(value).flatMap(([name, each]) => pathsOf(each, `${path}.${name}`))
}
