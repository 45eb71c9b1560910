/**
 * Runs a second, CPU a run and time to the first event: Errand, with everything on that users have on, against the bare
 * limit, interleaved in one run. Figures are ratios; the machine's own figures stand beside them for orientation.
 *
 *     node bench/throughput.ts [--rounds 5] [--runs 400]
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, runs: { type: 'string', default: '400' } },
})
const here = import.meta.dirname
const processes: ChildProcess[] = []
const dataDir = mkdtempSync(join(tmpdir(), 'errand-bench-'))

async function firstLine(child: ChildProcess, pattern = /(\d+)/): Promise<string> {
  processes.push(child)
  let said = ''
  for await (const text of child.stdout!.setEncoding('utf8')) {
    said += text
    const found = pattern.exec(said)
    if (found) return found[1]!
  }
  throw new Error(`It ended: ${said}`)
}

/** Processor time of a process with all its threads, milliseconds. */
function cpuOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function load(
  url: string,
  atOnce: number,
  runs: number,
  key = '',
): { perSecond: number; first: { median: number }; failed: number; why: string } {
  return JSON.parse(
    execFileSync(process.execPath, [join(here, 'load.ts'), url, `${atOnce}`, `${runs}`, key], { encoding: 'utf8' }),
  )
}

const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1]!

try {
  const env = { ...process.env, NODE_ENV: 'production' }
  const provider = spawn(process.execPath, [join(here, 'provider.ts'), 'fragments'], { env })
  const upstream = await firstLine(provider)
  const bare = spawn(process.execPath, [join(here, 'bare.ts'), upstream], { env })
  const barePort = await firstLine(bare)
  const config = {
    models: {
      'svc-3.5-flash': { provider: 'openai-compatible', baseUrl: `http://127.0.0.1:${upstream}/v1`, model: 'fake' },
    },
    sandbox: { pool: 0 },
    limits: { interactionsPerMinute: 1e9, callsPerMinute: 1e9, runningPerProject: 1000, queuedPerProject: 10_000 },
    workerSlots: 1000,
    log: 'warn',
  }
  const file = join(dataDir, 'errand.yaml')
  writeFileSync(file, stringify(config))
  const main = join(here, '..', 'src', 'main.ts')
  const flags = process.env.BENCH_NODE_FLAGS?.split(' ') ?? []
  const errand = spawn(process.execPath, [...flags, main, 'serve'], {
    env: { ...env, ERRAND_CONFIG: file, ERRAND_DATA_DIR: dataDir, ERRAND_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [errandUrl, key] = (await firstLine(errand, /([\s\S]*errand_sk_\w{38})/)).match(
    /http:\/\/[\d.:]+|errand_sk_\w{38}/g,
  ) as [string, string]
  const sides = {
    bare: { child: bare, url: `http://127.0.0.1:${barePort}/`, key: '' },
    errand: { child: errand, url: `${errandUrl}/v1beta/interactions:stream`, key },
  }
  for (const { url, key } of Object.values(sides)) load(url, 16, 200, key)
  for (const atOnce of [1, 16, 64]) {
    const figures = { bare: [] as number[][], errand: [] as number[][] }
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const [name, { child, url, key }] of Object.entries(sides)) {
        const runs = atOnce === 1 ? Number(values.runs) / 4 : Number(values.runs)
        const before = cpuOf(child)
        const { perSecond, first, failed, why } = load(url, atOnce, runs, key)
        if (failed > 0) throw new Error(`${name}: ${failed} runs failed: ${why}`)
        figures[name as 'bare'].push([perSecond, (cpuOf(child) - before) / runs, first.median])
      }
    }
    const [b, e] = [figures.bare, figures.errand].map((rounds) =>
      [0, 1, 2].map((i) => median(rounds.map((round) => round[i]!))),
    )
    const line = (name: string, i: number) =>
      `${name} ${(e![i]! / b![i]!).toFixed(2)} (${e![i]!.toFixed(2)} / ${b![i]!.toFixed(2)})`
    console.log(
      `${String(atOnce).padStart(3)} at once: ${line('runs/s', 0)}, ${line('CPU ms a run', 1)}, ${line('first event ms', 2)}`,
    )
  }
} finally {
  for (const child of processes) child.kill()
  rmSync(dataDir, { recursive: true, force: true })
}
