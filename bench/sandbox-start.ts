/**
 * Start time of a fresh sandbox: from the request to the result of its first Python, forked from a template and started
 * directly, and taken warm from a pool, against a plain bubblewrap that runs one Python without hardening, all interleaved. Then
 * measures how many reach that result in a second with 1, 4 and 16 at once, without a pool, and the private memory of one sandbox.
 * Needs root.
 *
 *     node bench/sandbox-start.ts [--rounds 5] [--count 40] [--rootfs DIRECTORY]
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openSandboxes } from '../src/sandbox/open-sandboxes.ts'
import type { Sandbox, Sandboxes } from '../src/sandbox/port.ts'
import { BUBBLEWRAP } from './bubblewrap.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    count: { type: 'string', default: '40' },
    rootfs: { type: 'string' },
  },
})
const [ROUNDS, COUNT] = [Number(values.rounds), Number(values.count)]
const { rootfs } = values
const limits = { memoryMiB: 512, cpus: 1, pids: 128, workspaceMiB: 256, files: 50_000, outputBytes: 65_536 }
const silent = () => {}
const log = { debug: silent, info: silent, warn: silent, error: silent }
const { signal } = new AbortController()

interface Side {
  readonly name: string
  /** One fresh sandbox to the result of its first Python; resolves to the milliseconds until then, when it is gone. */
  once(): Promise<number>
  close(): Promise<void>
}

const dataDirs: string[] = []
let count = 0

async function openWorld(forkServer: 'on' | 'off', pool = 0): Promise<Sandboxes> {
  const dataDir = mkdtempSync(join(tmpdir(), 'errand-bench-'))
  dataDirs.push(dataDir)
  return openSandboxes({ ...BUBBLEWRAP, rootfs, forkServer, dataDir, limits, pool, maxOpen: 64, log })
}

async function first(sandboxes: Sandboxes): Promise<Sandbox> {
  const interactionId = `int_${++count}`
  const sandbox = await sandboxes.open({ interactionId, epoch: 1, lifetimeMs: 600_000, limits }, signal)
  const request = { key: 'one', language: 'python', code: '40 + 2', timeoutMs: 60_000 } as const
  const { output } = await sandbox.exec(request, silent, signal)
  if (output !== '42\n') throw new Error(`It said ${output}`)
  return sandbox
}

async function sideOf(name: string, forkServer: 'on' | 'off'): Promise<Side & { sandboxes: Sandboxes }> {
  const sandboxes = await openWorld(forkServer)
  return {
    name,
    sandboxes,
    async once() {
      const began = performance.now()
      const sandbox = await first(sandboxes)
      const took = performance.now() - began
      await sandbox.destroy()
      return took
    },
    close: () => sandboxes.close(),
  }
}

async function fromPool(): Promise<Side> {
  const sandboxes = await openWorld('on', 1)
  return {
    name: 'forked, from the pool',
    async once() {
      while ((await sandboxes.counts()).warm === 0) await sleep(5)
      await sleep(100)
      const began = performance.now()
      const sandbox = await first(sandboxes)
      const took = performance.now() - began
      await sandbox.destroy()
      return took
    },
    close: () => sandboxes.close(),
  }
}

/** Minimal bubblewrap command, without limits, users and filters. */
const COLD = [
  ...['--unshare-all', '--die-with-parent', '--ro-bind', join(rootfs ?? '/', 'usr'), '/usr'],
  ...['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
  ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '/usr/bin/python3', '-c', 'print(40 + 2)'],
]

const cold: Side = {
  name: 'cold bubblewrap + Python',
  async once() {
    const began = performance.now()
    const child = spawn('/usr/bin/bwrap', COLD, { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    for await (const text of child.stdout.setEncoding('utf8')) said += text
    if (said !== '42\n') throw new Error(`bubblewrap said ${said}`)
    return performance.now() - began
  },
  async close() {},
}

const at = (list: number[], share: number) => list.toSorted((a, b) => a - b)[Math.floor(share * (list.length - 1))]!
const shown = (ms: number) => ms.toFixed(2).padStart(8)

const [forked, whole] = [await sideOf('forked', 'on'), await sideOf('started whole', 'off')]
const pooled = await fromPool()
const sides: Side[] = [forked, whole, cold]
const all = [...sides, pooled]
for (const side of all) for (let i = 0; i < 10; i++) await side.once()

console.log(
  `${availableParallelism()} cores; ${ROUNDS} rounds of ${COUNT}, interleaved; ms from asking to the first result`,
)
const times = new Map<Side, number[]>(all.map((side) => [side, []]))
for (let i = 0; i < ROUNDS * COUNT; i++) for (const side of all) times.get(side)!.push(await side.once())
for (const [side, list] of times) {
  const ratio = at(list, 0.5) / at(times.get(cold)!, 0.5)
  console.log(
    `  ${side.name.padEnd(24)} p50 ${shown(at(list, 0.5))}  p95 ${shown(at(list, 0.95))}  of cold: ${ratio.toFixed(2)}`,
  )
}

for (const atOnce of [1, 4, 16]) {
  const rates = new Map<Side, number[]>(sides.map((side) => [side, []]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of sides) {
      const began = performance.now()
      let left = COUNT
      const worker = async () => {
        while (left-- > 0) await side.once()
      }
      await Promise.all(Array.from({ length: atOnce }, worker))
      rates.get(side)!.push((COUNT * 1000) / (performance.now() - began))
    }
  }
  const said = [...rates].map(([side, list]) => `${side.name} ${at(list, 0.5).toFixed(1)}`)
  console.log(`${String(atOnce).padStart(3)} at once, made, used and gone a second: ${said.join(', ')}`)
}

for (const side of [forked, whole]) {
  const before = own()
  const held = await Promise.all(Array.from({ length: 20 }, () => first(side.sandboxes)))
  const each = (own() - before) / held.length / 1024
  console.log(`${side.name}: ${each.toFixed(1)} MiB of its own for a sandbox with a Python session`)
  for (const sandbox of held) await sandbox.destroy()
}

for (const side of all) await side.close()
for (const dataDir of dataDirs) rmSync(dataDir, { recursive: true, force: true })

/** KiB that the runners, keepers and sessions on this machine hold each for itself. */
function own(): number {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/smaps_rollup`))
    .reduce((sum, pid) => sum + privateOf(pid), 0)
}

function privateOf(pid: string): number {
  try {
    if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('/errand/runner.py')) return 0
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return [...rollup.matchAll(/^Private_\w+:\s+(\d+)/gm)].reduce((sum, [, kib]) => sum + Number(kib), 0)
  } catch {
    return 0
  }
}
