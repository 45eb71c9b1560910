/**
 * A fresh sandbox and the first code in it: Errand's, from nothing to the sandbox gone again, against a cold bubblewrap
 * that starts Python (as little isolated as it comes), and against `docker run` where a daemon can be started. The same with
 * code that imports numpy, pandas and pyplot, where the host's Python has them.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openSandboxes } from '../src/sandbox/open-sandboxes.ts'
import { type Docker, startDocker } from '../test/sandbox/dockerd.ts'
import { BUBBLEWRAP } from './bubblewrap.ts'
import { median, short } from './figures.ts'
import type { Measurement, Plan, Result } from './measurement.ts'
import { processorMs } from './processes.ts'

const LIMITS = { memoryMiB: 512, cpus: 1, pids: 128, workspaceMiB: 256, files: 10_000, outputBytes: 65_536 }
const CODE = 'print(6 * 7)'
const IMPORTS = 'import numpy, pandas, matplotlib.pyplot'
const IMPORTING = `${IMPORTS}; ${CODE}`
const READY_WITHIN_MS = 60_000
/** Everything of the host's read-only, no network, no other processes: nothing is limited, filtered or watched. */
const BWRAP =
  '--ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --unshare-all --die-with-parent --new-session /usr/bin/python3 -c'.split(
    ' ',
  )

interface Way {
  readonly name: string
  readonly importing?: boolean
  /** One after the other, so many a round. */
  readonly times: number
  /** Milliseconds to its result; `undefined`: it is gone by then, and all of it counts. */
  readonly once: () => Promise<number | undefined>
}

export const sandbox: Measurement = {
  name: 'sandbox',
  title: 'Sandboxes',
  rows: ['V5'],
  how: 'One after another: a sandbox is made, runs `print(6 * 7)` in Python, and is removed. Errand’s are hardened (namespaces, seccomp, limits, no network) and kept ready as by default; the others are cold. Then the same with `import numpy, pandas, matplotlib.pyplot` before it, which Errand’s sandboxes have loaded after the first that asked for it.',
  measure,
}

async function measure(plan: Plan): Promise<Result> {
  const dataDir = mkdtempSync(join(tmpdir(), 'errand-bench-'))
  const log = { debug() {}, info() {}, warn: console.warn, error: console.error }
  const sandboxes = await openSandboxes({ ...BUBBLEWRAP, dataDir, limits: LIMITS, pool: 2, maxOpen: 8, log })
  const missing: string[] = []
  const docker = plan.short
    ? undefined
    : await startDocker().catch((error) => void missing.push(`docker run: ${error.message}`))
  const { signal } = new AbortController()
  let made = 0
  const errand = async (code: string, preloaded = false, expected = '42\n') => {
    const began = performance.now()
    const spec = { interactionId: `bench-${++made}`, epoch: 1, lifetimeMs: 60_000, limits: LIMITS, preloaded }
    const opened = await sandboxes.open(spec, signal)
    const step = { key: 'first', language: 'python', code, timeoutMs: 60_000 } as const
    const { output } = await opened.exec(step, () => {}, signal)
    const ms = performance.now() - began
    await opened.destroy()
    check(output, expected)
    return ms
  }
  const cold = (code: string) => program('bwrap', [...BWRAP, code])
  const imports = await cold(IMPORTING).then(
    () => true,
    () => false,
  )
  if (!imports) missing.push(`${IMPORTS}: the host’s Python does not have them`)
  const importing: Way[] = [
    { name: 'Errand, importing', importing: true, times: 20, once: () => errand(IMPORTING, true) },
    { name: 'bubblewrap, importing', importing: true, times: 5, once: () => cold(IMPORTING) },
  ]
  const ways: Way[] = [
    { name: 'Errand', times: 20, once: () => errand(CODE) },
    { name: 'bubblewrap', times: 20, once: () => cold(CODE) },
    ...(docker ? [{ name: 'docker run', times: 2, once: () => dockerRun(docker) }] : []),
    ...(imports ? importing : []),
  ]
  try {
    if (imports) await untilPreloaded(() => errand('import sys; "pandas" in sys.modules', true, 'True\n'))
    for (const { once } of ways) await once()
    const times = new Map<string, number[]>(ways.map(({ name }) => [name, []]))
    const wholes = new Map<string, number[]>(ways.map(({ name }) => [name, []]))
    const processor = new Map<string, number[]>(ways.map(({ name }) => [name, []]))
    for (let round = 0; round < plan.rounds; round++) {
      for (const { name, times: most, once } of ways) {
        const before = processorMs(process.pid)
        const count = plan.short ? 1 : most
        const [took, whole]: [number[], number[]] = [[], []]
        for (let i = 0; i < count; i++) {
          const began = performance.now()
          const ms = await once()
          whole.push(performance.now() - began)
          took.push(ms ?? whole.at(-1)!)
        }
        times.get(name)!.push(median(took))
        wholes.get(name)!.push(median(whole))
        processor.get(name)!.push((processorMs(process.pid) - before) / count)
      }
      plan.log(`round ${round + 1}, ms: ${[...times].map(([name, all]) => `${name} ${short(all.at(-1)!)}`).join(', ')}`)
    }
    const of = (name: string) => median(times.get(name)!)
    const table = (title: string, among: readonly Way[]) => {
      const rows = among.map(({ name }) => {
        // Of a container, the daemon's time is not seen from here.
        const cpu = name === 'docker run' ? '-' : short(median(processor.get(name)!))
        return [name, short(of(name)), short(median(wholes.get(name)!)), cpu]
      })
      return { title, head: ['', 'to the result, ms', 'and gone, ms', 'CPU, ms'], rows }
    }
    const verdict = {
      row: 'V5',
      what: 'a fresh sandbox and its first code, against cold bubblewrap and Python',
      measured: of('Errand') / of('bubblewrap'),
      bound: 'at most',
      target: 0.25,
    } as const
    return {
      verdicts: [verdict],
      tables: [
        table(
          'A fresh sandbox and its first code',
          ways.filter((way) => !way.importing),
        ),
        ...(imports ? [table('The same, with numpy, pandas and matplotlib.pyplot imported', importing)] : []),
      ],
      missing,
    }
  } finally {
    await docker?.stop()
    await sandboxes.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function dockerRun({ dockerHost, image }: Docker): Promise<undefined> {
  return program('docker', ['-H', dockerHost, 'run', '--rm', '--network=none', image, 'python3', '-c', CODE])
}

async function program(name: string, args: readonly string[]): Promise<undefined> {
  check((await promisify(execFile)(name, args)).stdout)
}

/** The first sandboxes that are asked for come without: their template is being started. */
async function untilPreloaded(once: () => Promise<unknown>): Promise<void> {
  for (const end = Date.now() + READY_WITHIN_MS; ; await sleep(100)) {
    try {
      await once()
      return
    } catch (error) {
      if (Date.now() > end) throw error
    }
  }
}

function check(output: string, expected = '42\n'): void {
  if (output !== expected) throw new Error(`It printed ${output}`)
}
