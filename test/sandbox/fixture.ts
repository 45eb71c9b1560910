/** Real sandboxes for tests: a host in a temporary data directory, and functions that find its processes and cgroups. */
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { findPlaces } from '../../src/sandbox/cgroups.ts'
import type { Log } from '../../src/sandbox/driver.ts'
import { type DriverChoice, defaultChoice } from '../../src/sandbox/drivers.ts'
import { openSandboxes, type SandboxOptions } from '../../src/sandbox/open-sandboxes.ts'
import type { ExecResult, Language, Sandbox, Sandboxes, SandboxLimits } from '../../src/sandbox/port.ts'

/**
 * The driver under test and its settings. Tests in test/sandbox run on every driver, tests in test/sandbox/<driver> only on
 * that one.
 */
export const DRIVER: DriverChoice = {
  ...defaultChoice('bubblewrap'),
  // As root, cells are forked or the tests fail. Project `whole` in vitest.config.ts starts them whole.
  forkServer: inject('whole') ? 'off' : process.getuid?.() === 0 ? 'on' : 'auto',
  ...inject('docker'),
}

export const LIMITS: SandboxLimits = {
  memoryMiB: 256,
  cpus: 2,
  pids: 64,
  workspaceMiB: 32,
  files: 5000,
  outputBytes: 20_000,
}

export const never = new AbortController().signal
const silent = () => {}
export const quiet: Log = { debug: silent, info: silent, warn: silent, error: silent }

export interface World {
  readonly dataDir: string
  readonly sandboxes: Sandboxes
  /** Another client of the same host, as a second server would be. */
  connect(options?: Partial<SandboxOptions>): Promise<Sandboxes>
  /** A sandbox of a new interaction; preloaded in project `preloaded`. */
  sandbox(id?: string, limits?: SandboxLimits): Promise<Sandbox>
  close(): Promise<void>
}

export async function openWorld(options: Partial<SandboxOptions> = {}): Promise<World> {
  const { dataDir = mkdtempSync(join(tmpdir(), 'errand-test-')) } = options
  const all: Sandboxes[] = []
  let count = 0
  const connect = async (more: Partial<SandboxOptions> = {}) => {
    const defaults = { ...DRIVER, dataDir, limits: LIMITS, pool: 0, maxOpen: 8, log: quiet }
    const opened = await openSandboxes({ ...defaults, ...options, ...more })
    all.push(opened)
    return opened
  }
  const sandboxes = await connect()
  const preloaded = inject('preloaded') === true
  if (preloaded) await untilPreloaded(sandboxes)
  return {
    dataDir,
    sandboxes,
    connect,
    sandbox: (id = `int_${++count}`, limits = LIMITS) =>
      sandboxes.open({ interactionId: id, epoch: 1, lifetimeMs: 120_000, limits, preloaded }, never),
    async close() {
      for (const opened of all.reverse()) await opened.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Opens sandboxes until one has packages loaded: the first ones are plain. */
export async function untilPreloaded(sandboxes: Sandboxes): Promise<void> {
  let asked = 0
  await until(async () => {
    const spec = { interactionId: `asked-${++asked}`, epoch: 1, lifetimeMs: 60_000, limits: LIMITS, preloaded: true }
    const sandbox = await sandboxes.open(spec, never)
    const { output } = await run(sandbox, 'python', 'import sys; "pandas" in sys.modules')
    await sandbox.destroy()
    return output === 'True\n'
  })
}

let keys = 0

export function run(sandbox: Sandbox, language: Language, code: string, timeoutMs = 20_000): Promise<ExecResult> {
  return sandbox.exec({ key: `k${++keys}`, language, code, timeoutMs }, silent, never)
}

/** Processes on this machine whose command line contains the text. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(text)
      } catch {
        return false
      }
    })
    .map(Number)
}

/** Hash of the state directory, in the names of what the bubblewrap driver makes outside of it. */
function hashOf(dataDir: string): string {
  return createHash('sha256')
    .update(join(realpathSync(dataDir), 'sandbox'))
    .digest('hex')
    .slice(0, 12)
}

/** The bubblewrap driver's scratch directory. */
export function scratchOf(dataDir: string): string {
  return process.getuid?.() === 0 ? `/run/errand-${hashOf(dataDir)}` : join(realpathSync(dataDir), 'sandbox/run')
}

/** The control groups of this data directory's host. Undefined if it can have none. */
export function cgroupsOf(dataDir: string): string[] | undefined {
  const places = findPlaces()
  if (!places) return undefined
  return [...new Set(places.bases.values())]
    .map((base) => join(base, `errand-${hashOf(dataDir)}`))
    .filter((home) => existsSync(home))
    .flatMap((home) =>
      readdirSync(home, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => join(home, entry.name)),
    )
}

export function hostPid(dataDir: string): number {
  const [pid] = processesWith(join(dataDir, 'sandbox', 'host.sock')).filter((found) =>
    readFileSync(`/proc/${found}/cmdline`, 'latin1').includes('host-main'),
  )
  if (pid === undefined) throw new Error(`No sandbox host runs for ${dataDir}.`)
  return pid
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}
