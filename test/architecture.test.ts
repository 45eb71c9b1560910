/**
 * Imports run in one direction: domain ← runtime ← store, models, sandbox, … ← engine ← http ← compose ← cli ← main. A
 * room is a directory or file directly in src/. Rooms of one layer import only each other's ports. No two files import
 * values from each other, directly or through others.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const SRC = resolve(import.meta.dirname, '../src')

/**
 * Layers of rooms, from the innermost to the outermost. A file may import from its own room and from all layers listed
 * before its own.
 */
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

/** Rooms within the engine, from the innermost to the outermost. */
const ENGINE_ROOMS = ['engine/run', 'engine/agent', 'engine/queue']

/** Ports: the files that another room of the same layer may import. */
const PORTS = new Set([
  'accounts/accounts.ts',
  'accounts/credentials.ts',
  'blobs/port.ts',
  'buckets/port.ts',
  'config.ts',
  'egress/port.ts',
  'models/port.ts',
  // Provider records: the configuration and the traces take names from them.
  'models/providers/registry.ts',
  // Driver definitions: the configuration takes the `sandbox` settings from them.
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

/** The client that users install. The command line calls servers through it. */
const CLIENT = '../clients/typescript/src/index.ts'

/** Returns undefined if `from` may import `to`. Both are paths in src/. */
function violation(from: string, to: string): string | undefined {
  if (to === CLIENT && room(from) === 'cli') return undefined
  const [fromRoom, toRoom] = [room(from), room(to)]
  if (fromRoom === toRoom) return leavesEngineRoom(from, to) ? `${from} imports ${to}` : undefined
  const [fromLayer, toLayer] = [layer(fromRoom), layer(toRoom)]
  if (toLayer < fromLayer || (toLayer === fromLayer && PORTS.has(to))) return undefined
  return `${from} imports ${to}`
}

/** Whether an import within the engine violates the order of its rooms. Files outside these rooms have no order. */
function leavesEngineRoom(from: string, to: string): boolean {
  const [fromAt, toAt] = [from, to].map((path) => ENGINE_ROOMS.indexOf(dirname(path)))
  return fromAt! >= 0 && toAt! > fromAt!
}

/** The room of a path: `demo/plan.ts` → `demo`, `config.ts` → `config`. */
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

/** Imports and re-exports of values, which Node loads at start. Imports of types are not included. */
function valueImports(source: string): string[] {
  const pattern = /^(?:import|export) (?!type )([^'"]*?) ?from '(\.{1,2}\/[^']+\.ts)'|^import '(\.{1,2}\/[^']+\.ts)'/gm
  return [...source.matchAll(pattern)]
    .filter(([, names = '']) => !/^\{(\s*type [^,}]+,?)+\s*\}$/.test(names))
    .map((match) => (match[2] ?? match[3])!)
}

/**
 * Returns the files of an import cycle in order, with the first one repeated at the end, or undefined if there is no
 * cycle.
 */
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

test('all imports in src/ go from an outer layer to an inner one', () => {
  const files = sources()
  const found = files.flatMap(({ path, text }) =>
    imports(text).map((target) => violation(path, relative(SRC, resolve(SRC, dirname(path), target)))),
  )
  expect(found.length).toBeGreaterThan(files.length)
  expect(found.filter((each) => each !== undefined)).toEqual([])
})

test('reports an import from an inner layer to an outer one', () => {
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

test('no files import values from each other in a cycle', () => {
  const graph = new Map(
    sources().map(({ path, text }) => [
      path,
      valueImports(text).map((target) => relative(SRC, resolve(SRC, dirname(path), target))),
    ]),
  )
  expect([...graph.values()].flat().length).toBeGreaterThan(graph.size)
  expect(findCycle(graph)).toBeUndefined()
})

test('finds a cycle of value imports and ignores type imports', () => {
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
