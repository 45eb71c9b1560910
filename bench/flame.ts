/**
 * A processor profile as a flame graph: who called whom from bottom to top, as wide as its share of the time in which the
 * thread was busy. The beginning, which is the start of the server, is left out.
 *
 *     BENCH_NODE_FLAGS='--cpu-prof --cpu-prof-dir=DIR' script/bench V2
 *     node bench/flame.ts FILE.cpuprofile [--skip SECONDS] > docs/images/flame-run.svg
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

/** Profile format of V8: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile */
interface Profile {
  readonly nodes: readonly ProfileNode[]
  /** Ids of nodes. */
  readonly samples: readonly number[]
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[]
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string }
  readonly children?: readonly number[]
}

/** Frames of one name under one parent, put together. */
interface Flame {
  readonly name: string
  time: number
  readonly above: Map<string, Flame>
}

const WIDTH = 1_200
const ROW = 16
/** Narrower than this nothing is drawn, pixels; nor text that has no room. */
const NARROWEST = 1
const LETTER = 6.2
/** No work, or none that anything is known of. */
const IDLE = new Set(['(idle)', '(program)', '(root)'])

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { skip: { type: 'string', default: '0' } },
})
const profile: Profile = JSON.parse(readFileSync(positionals[0]!, 'utf8'))
process.stdout.write(`${draw(grow(profile, Number(values.skip) * 1e6))}\n`)

function grow({ nodes, samples, timeDeltas }: Profile, skipUs: number): Flame {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const below = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)))
  const root: Flame = { name: 'busy', time: 0, above: new Map() }
  let at = 0
  for (const [i, sample] of samples.entries()) {
    const us = timeDeltas[i] ?? 0
    at += us
    if (at < skipUs || IDLE.has(byId.get(sample)!.callFrame.functionName)) continue
    const stack: string[] = []
    for (let id: number | undefined = sample; id !== undefined; id = below.get(id)) {
      const name = nameOf(byId.get(id)!)
      if (name !== undefined && name !== stack[0]) stack.unshift(name)
    }
    root.time += us
    let flame = root
    for (const name of stack) {
      const next: Flame = flame.above.get(name) ?? { name, time: 0, above: new Map() }
      flame.above.set(name, next)
      next.time += us
      flame = next
    }
  }
  return root
}

/** A function with where it is; all of one package, or of one part of Node, as one. */
function nameOf({ callFrame: { functionName, url } }: ProfileNode): string | undefined {
  if (functionName === '(root)') return undefined
  const own = /\/(?:src|dist)\/(.+)\.[jt]s$/.exec(url)
  if (own) return `${functionName || '…'} ${own[1]}`
  const library = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)
  if (library) return library[1]
  if (url.startsWith('node:')) return url.replace(/^(node:(?:internal\/)?[^/]+).*$/, '$1')
  return functionName === '' ? undefined : functionName
}

function draw(root: Flame): string {
  const boxes: string[] = []
  let deepest = 0
  const place = (flame: Flame, x: number, depth: number): void => {
    const width = (flame.time / root.time) * WIDTH
    if (width < NARROWEST) return
    deepest = Math.max(deepest, depth)
    boxes.push(box(flame, x, depth, width, flame.time / root.time))
    let next = x
    for (const above of [...flame.above.values()].sort((a, b) => b.time - a.time)) {
      place(above, next, depth + 1)
      next += (above.time / root.time) * WIDTH
    }
  }
  place(root, 0, 0)
  const height = (deepest + 1) * ROW
  const style = 'font-family="sans-serif" font-size="11"'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 ${-height} ${WIDTH} ${height}" role="img" aria-label="Flame graph of a run" ${style}>
<rect y="${-height}" width="${WIDTH}" height="${height}" fill="#fff"/>
${boxes.join('\n')}
</svg>`
}

function box({ name }: Flame, x: number, depth: number, width: number, share: number): string {
  const letters = Math.floor(width / LETTER) - 1
  const shown = letters < 3 ? '' : name.length > letters ? `${name.slice(0, letters - 1)}…` : name
  const y = -(depth + 1) * ROW
  const percent = (share * 100).toFixed(1)
  return `<g><title>${escaped(name)}: ${percent} %</title><rect x="${x.toFixed(1)}" y="${y}" width="${(width - 0.5).toFixed(1)}" height="${ROW - 1}" fill="${colourOf(name)}"/>${shown && `<text x="${(x + 3).toFixed(1)}" y="${y + 11}">${escaped(shown)}</text>`}</g>`
}

/** Ours, Node, the engine's own work, libraries and system calls. */
function colourOf(name: string): string {
  if (name.startsWith('(')) return '#d3c1dd'
  if (name.includes(' ')) return '#f2b777'
  return name.startsWith('node:') ? '#a9cfa4' : '#9fc1de'
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
