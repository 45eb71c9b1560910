/**
 * Imports run one way: domain ← runtime ← store, models, sandbox, … ← engine ← http ← compose ← cli ← main.
 * The rooms of one layer know each other by their ports alone. No two files import values from each other, directly or
 * through others.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const SRC = resolve(import.meta.dirname, '../src')

/** From the innermost outwards. A file may import from its own room and from any layer before its own. */
const LAYERS: readonly (readonly string[])[] = [
  ['domain'],
  ['runtime'],
  [
    'accounts',
    'blobs',
    'buckets',
    'config',
    'demo',
    'egress',
    'models',
    'sandbox',
    'search',
    'skills',
    'store',
    'telemetry',
    'tools',
  ],
  ['engine'],
  ['http'],
  ['compose'],
  ['cli'],
  ['main'],
]

/** The rooms within the engine, from the innermost outwards. */
const ENGINE_ROOMS = ['engine/run', 'engine/agent', 'engine/queue']

/** What the rooms of one layer may know of each other. */
const PORTS = new Set([
  'accounts/accounts.ts',
  'accounts/credentials.ts',
  'blobs/port.ts',
  'buckets/port.ts',
  'config.ts',
  'egress/port.ts',
  'models/port.ts',
  // The providers' own records, which the configuration and the traces take names from.
  'models/providers/registry.ts',
  // The drivers' own definitions, which the configuration takes its settings of `sandbox` from.
  'sandbox/driver.ts',
  'sandbox/drivers.ts',
  'sandbox/port.ts',
  'search/port.ts',
  'skills/port.ts',
  'store/fixed-query.ts',
  'store/locks.ts',
  'store/port.ts',
  'store/tables.ts',
  'telemetry/log.ts',
  'telemetry/events.ts',
  'tools/port.ts',
])

/** The command line calls servers through the client that users install. */
const CLIENT = '../clients/typescript/src/index.ts'

/** Undefined where `from` may import `to`; both are paths in src/. */
function violation(from: string, to: string): string | undefined {
  if (to === CLIENT && room(from) === 'cli') return undefined
  const [fromRoom, toRoom] = [room(from), room(to)]
  if (fromRoom === toRoom) return leavesEngineRoom(from, to) ? `${from} imports ${to}` : undefined
  const [fromLayer, toLayer] = [layer(fromRoom), layer(toRoom)]
  if (toLayer < fromLayer || (toLayer === fromLayer && PORTS.has(to))) return undefined
  return `${from} imports ${to}`
}

/** Whether an import within the engine runs against the order of its rooms. Files beside the rooms are not ordered. */
function leavesEngineRoom(from: string, to: string): boolean {
  const [fromAt, toAt] = [from, to].map((path) => ENGINE_ROOMS.indexOf(dirname(path)))
  return fromAt! >= 0 && toAt! > fromAt!
}

/** `demo/plan.ts` → `demo`, `config.ts` → `config`. */
function room(path: string): string {
  return path.split('/')[0]!.replace(/\.ts$/, '')
}

function layer(name: string): number {
  const index = LAYERS.findIndex((rooms) => rooms.includes(name))
  if (index < 0) throw new Error(`src/${name} is no room that test/architecture.test.ts knows; give it a layer.`)
  return index
}

function imports(source: string): string[] {
  const pattern = /(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+\.ts)'/g
  return [...source.matchAll(pattern)].map((match) => match[1]!)
}

/** Imports and re-exports of values, which are loaded at start. Imports of types alone are none. */
function valueImports(source: string): string[] {
  const pattern = /^(?:import|export) (?!type )([^'"]*?) ?from '(\.{1,2}\/[^']+\.ts)'|^import '(\.{1,2}\/[^']+\.ts)'/gm
  return [...source.matchAll(pattern)]
    .filter(([, names = '']) => !/^\{(\s*type [^,}]+,?)+\s*\}$/.test(names))
    .map((match) => (match[2] ?? match[3])!)
}

/** The files of a cycle in the order of their imports, the first one again at the end; undefined if there is no cycle. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const finished = new Set<string>()
  const path: string[] = []
  function visit(file: string): string[] | undefined {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (finished.has(file)) return undefined
    path.push(file)
    for (const target of graph.get(file) ?? []) {
      const cycle = visit(target)
      if (cycle) return cycle
    }
    path.pop()
    finished.add(file)
    return undefined
  }
  for (const file of graph.keys()) {
    const cycle = visit(file)
    if (cycle) return cycle
  }
  return undefined
}

function sources(): { path: string; text: string }[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path, text: readFileSync(join(SRC, path), 'utf8') }))
}

test('imports run one way', () => {
  const files = sources()
  const found = files.flatMap(({ path, text }) =>
    imports(text).map((target) => violation(path, relative(SRC, resolve(SRC, dirname(path), target)))),
  )
  expect(found.length).toBeGreaterThan(files.length)
  expect(found.filter((each) => each !== undefined)).toEqual([])
})

test('an import against the direction is found', () => {
  const text =
    "import type { Engine } from '../engine/engine.ts'\nimport { x } from './x.ts'\nawait import('../compose.ts')"
  expect(imports(text)).toEqual(['../engine/engine.ts', './x.ts', '../compose.ts'])
  expect(violation('store/events.ts', 'engine/engine.ts')).toBe('store/events.ts imports engine/engine.ts')
  expect(violation('domain/event.ts', 'store/port.ts')).toBe('domain/event.ts imports store/port.ts')
  expect(violation('tools/tools.ts', 'sandbox/bubblewrap.ts')).toBe('tools/tools.ts imports sandbox/bubblewrap.ts')
  expect(violation('http/app.ts', 'compose.ts')).toBe('http/app.ts imports compose.ts')
  expect(violation('tools/tools.ts', 'sandbox/port.ts')).toBeUndefined()
  expect(violation('cli/client.ts', CLIENT)).toBeUndefined()
  expect(violation('engine/queue/execute.ts', 'store/events.ts')).toBeUndefined()
  expect(violation('engine/run/run.ts', 'engine/queue/slots.ts')).toBe(
    'engine/run/run.ts imports engine/queue/slots.ts',
  )
  expect(violation('engine/queue/execute.ts', 'engine/run/run.ts')).toBeUndefined()
})

test('no files import values in a cycle', () => {
  const graph = new Map(
    sources().map(({ path, text }) => [
      path,
      valueImports(text).map((target) => relative(SRC, resolve(SRC, dirname(path), target))),
    ]),
  )
  expect([...graph.values()].flat().length).toBeGreaterThan(graph.size)
  expect(findCycle(graph)).toBeUndefined()
})

test('a cycle of values is found, and types are not values', () => {
  const text = [
    "import type { A } from './a.ts'",
    "import { type B, type C } from './b.ts'",
    "import { type D, d } from './d.ts'",
    "import {\n  e,\n  type F,\n} from './e.ts'",
    "export { g } from './g.ts'",
    "import './h.ts'",
  ].join('\n')
  expect(valueImports(text)).toEqual(['./d.ts', './e.ts', './g.ts', './h.ts'])
  const graph = new Map(Object.entries({ a: ['b'], b: ['c', 'd'], c: [], d: ['b'] }))
  expect(findCycle(graph)).toEqual(['b', 'd', 'b'])
  expect(findCycle(new Map(Object.entries({ a: ['b', 'c'], b: ['c'], c: [] })))).toBeUndefined()
})
