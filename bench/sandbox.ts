/**
 * A fresh sandbox and the first code in it: Errand's, from nothing to the sandbox gone again, against a cold bubblewrap
 * that starts Python (as little isolated as it comes), and against `docker run` where a daemon can be started.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openSandboxes } from '../src/sandbox/open-sandboxes.ts'
import { type Docker, startDocker } from '../test/sandbox/dockerd.ts'
import { BUBBLEWRAP } from './bubblewrap.ts'
import { median, short } from './figures.ts'
import type { Measurement, Plan, Result } from './measurement.ts'
import { processorMs } from './processes.ts'

const LIMITS = { memoryMiB: 512, cpus: 1, pids: 128, workspaceMiB: 256, files: 10_000, outputBytes: 65_536 }
const CODE = 'print(6 * 7)'
/** Everything of the host's read-only, no network, no other processes: nothing is limited, filtered or watched. */
const BWRAP =
  '--ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --unshare-all --die-with-parent --new-session /usr/bin/python3 -c'.split(
    ' ',
  )

interface Way {
  readonly name: string
  /** One after the other, so many a round. */
  readonly times: number
  /** Milliseconds to its result; `undefined`: it is gone by then, and all of it counts. */
  readonly once: () => Promise<number | undefined>
}

export const sandbox: Measurement = {
  name: 'sandbox',
  title: 'Sandboxes',
  rows: ['V5'],
  how: 'One after another: a sandbox is made, runs `print(6 * 7)` in Python, and is removed. Errand’s are hardened (namespaces, seccomp, limits, no network) and kept ready as by default; the others are cold.',
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
  const errand = async () => {
    const began = performance.now()
    const spec = { interactionId: `bench-${++made}`, epoch: 1, lifetimeMs: 60_000, limits: LIMITS }
    const opened = await sandboxes.open(spec, signal)
    const step = { key: 'first', language: 'python', code: CODE, timeoutMs: 60_000 } as const
    const { output } = await opened.exec(step, () => {}, signal)
    const ms = performance.now() - began
    check(output)
    await opened.destroy()
    return ms
  }
  const ways: Way[] = [
    { name: 'Errand', times: 20, once: errand },
    { name: 'bubblewrap', times: 20, once: () => program('bwrap', [...BWRAP, CODE]) },
    ...(docker ? [{ name: 'docker run', times: 2, once: () => dockerRun(docker) }] : []),
  ]
  try {
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
    const rows = ways.map(({ name }) => {
      // Of a container, the daemon's time is not seen from here.
      const cpu = name === 'docker run' ? '-' : short(median(processor.get(name)!))
      return [name, short(of(name)), short(median(wholes.get(name)!)), cpu]
    })
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
        {
          title: 'A fresh sandbox and its first code',
          head: ['', 'to the result, ms', 'and gone, ms', 'CPU, ms'],
          rows,
        },
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

function check(output: string): void {
  if (output !== '42\n') throw new Error(`It printed ${output}`)
}
