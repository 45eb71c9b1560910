/**
 * The bubblewrap driver: fresh user, mount, pid, network, ipc, uts and cgroup namespaces a cell, no capability, a seccomp
 * filter, read-only root, limits by cgroup. As root every cell has a host uid of its own that owns nothing.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { release } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine } from '../docker/engine.ts'
import { exportImage } from '../docker/export.ts'
import type { Cell, CellShape, Driver, FasterDriver, HostDirectory, PreloadedDriver } from '../driver.ts'
import { MESSAGE_QUEUE_BYTES, PENDING_SIGNALS, PRELOADED, RUNNER_INSIDE, socketMiB, TERMINALS } from '../inside.ts'
import type { SandboxLimits } from '../port.ts'
import { runnerSource } from '../python-bundle.ts'
import { sharedKernel } from '../shared-kernel.ts'
import { explainRefusal } from './causes.ts'
import { type Cgroups, type Group, NOTHING_COUNTED, openCgroups } from './cgroups.ts'
import { bubblewrapArguments, LAUNCH_SCRIPT, type TemplateCommand, templateArguments } from './command.ts'
import { readFirstProcess, waitUntilGone } from './first-process.ts'
import { type ForkServer, openForkServer } from './fork-server.ts'
import { type CellMounts, createMounts } from './mounts.ts'
import type { BubblewrapOptions } from './options.ts'
import { prepareRoot, resolveInside } from './rootfs.ts'
import { ARCHITECTURES, type Architecture, seccompProgram } from './seccomp.ts'
import { TEMPLATE_FDS } from './template.ts'

const MIB = 1024 * 1024
/** Above what distributions and container runtimes give out, below 2^31; each host takes so many from here. */
const FIRST_UID = 1_900_000_000
/** For a thousand sandboxes in use, some that are ready, and the template. */
const UIDS_A_HOST = 1024
const STDERR_KEPT = 4096

/** Throws an Error with a sentence for the operator where no sandbox can be made here. */
export async function openBubblewrap({
  stateDir,
  rootfs: configured,
  forkServer,
  dockerHost,
}: BubblewrapOptions & HostDirectory): Promise<Driver> {
  const bwrap = findBubblewrap()
  const rootfs = await findTree(configured, dockerHost, stateDir)
  const python = findPython(rootfs)
  const hash = createHash('sha256').update(stateDir).digest('hex').slice(0, 12)
  const firstUid = process.getuid?.() === 0 ? uidRange(hash) : undefined
  const drops = firstUid !== undefined
  const scratch = makeScratch(drops ? `/run/errand-${hash}` : join(stateDir, 'run'))
  const cgroups = openCgroups(`errand-${hash}`)
  await cgroups.sweep()

  const filters = { code: join(scratch, 'seccomp.bpf'), browser: join(scratch, 'seccomp-browser.bpf') }
  const programs = {
    code: seccompProgram(process.arch as Architecture, 'code'),
    browser: seccompProgram(process.arch as Architecture, 'browser'),
  }
  for (const profile of ['code', 'browser'] as const) writeFileSync(filters[profile], programs[profile])
  const root = prepareRoot({ rootfs, scratch, stateDir, runner: runnerSource() })
  const runner = compileRunner(root.layers[0]!, rootfs)
  const uidOf = firstUid === undefined ? undefined : (slot: number) => firstUid + slot
  const cellMounts = createMounts({ scratch, root, uidOf })
  const slots = new Set<number>()
  let count = 0

  function start(group: Group | undefined, slot: number, { limits, profile, mounts }: CellShape): ChildProcess {
    const { before, root, places } = cellMounts.prepare(slot, limits, mounts)
    const about = { python, runner: runner(), profile, rlimits: rlimits(limits, cgroups, drops) }
    const command = [
      ...(group?.joinFiles ?? []),
      '--',
      ...before,
      ...(drops ? dropTo(firstUid + slot) : []),
      bwrap,
      ...bubblewrapArguments({ ...about, root, places }),
    ]
    const filterFd = openSync(filters[profile], 'r')
    try {
      return spawn('/bin/sh', ['-c', LAUNCH_SCRIPT, 'errand', ...command], {
        stdio: ['pipe', 'pipe', 'pipe', filterFd, 'pipe'],
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
        detached: true, // a ^C on the terminal is the server's to handle
      })
    } finally {
      closeSync(filterFd)
    }
  }

  async function openForks(name: string, modules: readonly string[], patient: boolean): Promise<ForkServer> {
    if (!drops) throw new Error('a fork-server needs root, for a host user to each sandbox')
    const program = placeProgram(scratch, 'template.py')
    const door = join(scratch, name)
    mkdirSync(door, { recursive: true })
    const { before, root, given, plan } = cellMounts.prepareTemplate()
    const about = { root, given, python: opaque(scratch, rootfs, python), program, door }
    const command = [
      ...before,
      ...dropTo(firstUid),
      bwrap,
      ...templateArguments({ ...about, fds: TEMPLATE_FDS, modules }),
    ]
    const uids = { first: firstUid, count: UIDS_A_HOST }
    return openForkServer({
      template: { command, uids, filters: programs, plan },
      rlimits: ({ limits }) => rlimits(limits, cgroups, drops),
      door: join(door, 'socket'),
      patient,
    })
  }

  type Way = (shape: CellShape, slot: number, group: Group | undefined, onGone: () => void) => Promise<Cell>
  const whole: Way = async (shape, slot, group, onGone) => createCell(start(group, slot, shape), group, onGone)

  async function launch(shape: CellShape, way: Way): Promise<Cell> {
    const group = cgroups.create(`${Date.now().toString(36)}-${++count}`, shape.limits)
    const slot = freeSlot(slots)
    try {
      return await way(shape, slot, group, () => slots.delete(slot))
    } catch (error) {
      slots.delete(slot)
      await group?.remove()
      throw error
    }
  }

  const about: Pick<Driver, 'name' | 'concedes' | 'holds' | 'sweep'> = {
    name: 'bubblewrap',
    concedes: [
      ...(cellMounts.countsFiles ? [] : ['files without end']),
      ...(cellMounts.opensSettings ? ['writing to the settings of its own namespaces'] : []),
      ...(cellMounts.ownsRoot ? [] : ["another sandbox's locks on files of the root"]),
      ...(cellMounts.ownsDevices ? [] : ["another sandbox's locks on devices"]),
      ...(cellMounts.countsTerminals ? [] : ['terminals without end']),
    ],
    holds: (limits) => describe(limits, cgroups, drops, cellMounts),
    sweep: () => cgroups.sweep(),
  }

  async function openFaster(): Promise<FasterDriver> {
    const forks = await openForks('door', [], true)
    return {
      ...about,
      made: 'forked from a template',
      suits: ({ mounts }) => mounts.length === 0,
      launch: (shape) => launch(shape, forks.launch),
      openPreloaded,
      close: forks.close,
    }
  }

  async function openPreloaded(): Promise<PreloadedDriver> {
    const forks = await openForks('door-preloaded', PRELOADED, false)
    return {
      ...about,
      made: 'forked from a template with packages loaded',
      ready: forks.ready,
      launch: (shape) => launch(shape, forks.launch),
      close: forks.close,
    }
  }

  return {
    ...about,
    made: 'each by a bubblewrap of its own',
    launch: (shape) => launch(shape, whole),
    faster: { use: forkServer, setting: 'sandbox.forkServer', open: openFaster },
    async close() {
      await cgroups.close()
      rmSync(scratch, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** The configured tree; of an image, what it was exported to. */
async function findTree(rootfs: string | undefined, dockerHost: string, stateDir: string): Promise<string | undefined> {
  if (rootfs === undefined || existsSync(rootfs)) return rootfs
  if (isAbsolute(rootfs)) throw new Error(`sandbox.rootfs: ${rootfs} does not exist.`)
  return exportImage(createEngine(dockerHost), rootfs, join(stateDir, 'images'))
}

/** The Python of the root, as it is seen inside. */
function findPython(rootfs: string | undefined): string {
  if (!(process.arch in ARCHITECTURES)) {
    throw new Error(`The sandbox has no seccomp table for ${process.arch}; x86_64 and aarch64 are supported.`)
  }
  // A link may lead to where it is right only inside. The host's own /usr/local is not Debian's to vouch for.
  const places = rootfs === undefined ? ['/usr/bin/python3'] : ['/usr/local/bin/python3', '/usr/bin/python3']
  const found = places.find((place) => lstatSync(join(rootfs ?? '/', place), { throwIfNoEntry: false }))
  if (found) return found
  throw new Error(
    rootfs === undefined
      ? 'The sandbox needs /usr/bin/python3, which is not there: apt-get install -y python3'
      : `sandbox.rootfs: ${rootfs} has no usr/bin/python3, which the sandbox needs.`,
  )
}

/** Where the runner's program is inside: the source until it is compiled, which saves each sandbox 8 of some 45 ms. */
function compileRunner(base: string, rootfs: string | undefined): () => string {
  let program = RUNNER_INSIDE
  if (rootfs === undefined) {
    const compiled = `${RUNNER_INSIDE}c`
    const script = 'import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)'
    const files = [join(base, RUNNER_INSIDE), join(base, compiled)]
    const child = spawn('/usr/bin/python3', ['-I', '-S', '-c', script, ...files], { stdio: 'ignore' })
    child.once('error', () => {}) // the source serves as well
    child.once('close', (code) => {
      if (code === 0) program = compiled
    })
  }
  return () => program
}

/**
 * The template's Python: a copy that can be run and not be opened. Its cells have /proc/self/exe in common, and a file that
 * they could open there they could lock.
 */
function opaque(scratch: string, rootfs: string | undefined, path: string): TemplateCommand['python'] {
  const copy = join(scratch, 'python')
  const file = resolveInside(rootfs ?? '/', path)
  if (!existsSync(copy)) copyFileSync(join(rootfs ?? '/', file), copy)
  chmodSync(copy, 0o711)
  return { path, file, copy }
}

/** A copy that every uid can read. */
function placeProgram(scratch: string, name: string): string {
  const program = join(scratch, basename(name))
  copyFileSync(join(import.meta.dirname, name), program)
  chmodSync(program, 0o644)
  return program
}

function createCell(child: ChildProcess, group: Group | undefined, onGone: () => void): Cell {
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT)
  })
  child.stdin!.on('error', () => {}) // it ends: `exited` tells
  const first = readFirstProcess(child.stdio[4] as Readable)
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', () => resolve(explainRefusal(stderr.trim())))
  })
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    child.kill('SIGKILL')
    child.stdin!.destroy()
    await Promise.race([exited, sleep(1000)])
    const pid = await Promise.race([first, sleep(1000, undefined)])
    if (pid) await waitUntilGone(pid)
    await group?.remove()
    onGone()
  }
  return {
    stdin: child.stdin!,
    stdout: child.stdout!,
    exited,
    counters: () => group?.counters() ?? NOTHING_COUNTED,
    end: () => (ending ??= end()),
  }
}

function findBubblewrap(): string {
  const path = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap'].find((place) => existsSync(place))
  if (!path) {
    throw new Error(
      'The sandbox needs bubblewrap, which is not installed: apt-get install -y bubblewrap (Debian, Ubuntu)',
    )
  }
  const version = execFileSync(path, ['--version'], { encoding: 'utf8' }).trim()
  const [major = 0, minor = 0] = (/(\d{1,5})\.(\d{1,5})/.exec(version)?.slice(1) ?? []).map(Number)
  if (major === 0 && minor < 8) {
    throw new Error(
      `The sandbox needs bubblewrap 0.8.0 or newer; ${path} is ${version}. Debian 12 and Ubuntu 24.04 have it.`,
    )
  }
  return path
}

/** A directory that every uid can read and only we can write. */
function makeScratch(path: string): string {
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true, mode: 0o755 })
  chmodSync(path, 0o755)
  return path
}

function dropTo(uid: number): string[] {
  return ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '--no-new-privs', '--']
}

/**
 * The first of this host's uids. In a container that maps few, they are taken from the end of what is mapped; undefined
 * where next to none is mapped, as in a user namespace made by an ordinary user.
 */
function uidRange(hash: string): number | undefined {
  const maps = readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n')
  const end = Math.max(
    ...maps.map((line) => line.trim().split(/\s+/).map(Number)).map(([from = 0, , size = 0]) => from + size),
  )
  const wanted = FIRST_UID + (Number.parseInt(hash.slice(0, 6), 16) % 200_000) * UIDS_A_HOST
  if (wanted + UIDS_A_HOST <= end) return wanted
  return end > 10 * UIDS_A_HOST ? end - 2 * UIDS_A_HOST - 2 : undefined
}

function freeSlot(slots: Set<number>): number {
  let slot = 1 // the first uid is the template's
  while (slots.has(slot)) slot++
  if (slot >= UIDS_A_HOST)
    throw new Error(`More than ${UIDS_A_HOST - 1} sandboxes at once on one host are not supported.`)
  slots.add(slot)
  return slot
}

/** What the runner sets for the sessions, beside the cgroup or in its place. */
function rlimits(limits: SandboxLimits, cgroups: Cgroups, drops: boolean): Record<string, number> {
  return {
    ...(drops || countsProcessesByNamespace() ? { RLIMIT_NPROC: limits.pids } : {}),
    RLIMIT_SIGPENDING: PENDING_SIGNALS,
    RLIMIT_MSGQUEUE: MESSAGE_QUEUE_BYTES,
    ...(cgroups.controllers.has('memory') ? {} : { RLIMIT_DATA: processMemoryMiB(limits) * MIB }),
  }
}

/** Node reserves 600 MiB before it does anything: less, and it could not start. */
function processMemoryMiB(limits: SandboxLimits): number {
  return limits.memoryMiB + 640
}

/** Since Linux 5.14 RLIMIT_NPROC counts within the user namespace; before, all processes of the host's user. */
function countsProcessesByNamespace(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  return major > 5 || (major === 5 && minor >= 14)
}

function describe(
  limits: SandboxLimits,
  { version, controllers, countsSockets }: Cgroups,
  drops: boolean,
  mounts: CellMounts,
) {
  const enforced = [
    'network: none (an empty network namespace)',
    'files: the root is read-only; nothing of the host but /usr or the configured tree is seen',
    'system calls: seccomp filter, no capability, no new privileges, no further namespaces',
    `workspace: ${limits.workspaceMiB} MiB; /tmp and /dev/shm: 64 MiB each`,
  ]
  const notEnforced = sharedKernel()
  const shared = (what: string, remedy: string) => notEnforced.push(`${what}: ${remedy}`)
  if (mounts.ownsRoot) enforced.push('inodes of the root: its own, so locks and watches on files reach nobody else')
  else
    shared(
      'inodes of the root are the host’s: locks and watches on files reach others',
      'this kernel mounts no overlays here',
    )
  if (!mounts.ownsDevices)
    shared('devices are the host’s: locks and watches on /dev/null reach others', 'run Errand as root')
  if (mounts.countsTerminals) enforced.push(`terminals: ${TERMINALS}`)
  else shared('number of terminals (the machine has 4,096)', 'run Errand as root')
  if (mounts.countsFiles) enforced.push(`number of files: ${limits.files} in the workspace, as many in /tmp`)
  else
    notEnforced.push('number of files: bounded by memory alone, since nothing can be mounted here: run Errand as root')
  if (mounts.opensSettings)
    notEnforced.push(
      'settings of a sandbox’s own namespaces (the sizes of its message queues) can be changed inside: run Errand as root',
    )
  const remedy = 'run Errand as root, or as a systemd service with Delegate=yes and DelegateSubgroup=main'
  const say = (controller: 'memory' | 'pids' | 'cpu', held: string, missing: string) =>
    controllers.has(controller)
      ? enforced.push(`${held} (cgroup ${version})`)
      : notEnforced.push(`${missing}: ${remedy}`)
  say(
    'memory',
    `memory: ${limits.memoryMiB} MiB, files of the workspace included`,
    `memory of a sandbox as a whole (each process: ${processMemoryMiB(limits)} MiB)`,
  )
  if (countsSockets)
    enforced.push(
      version === 'v1'
        ? `buffers of sockets: ${socketMiB(limits)} MiB (cgroup v1)`
        : 'buffers of sockets: counted with the memory (cgroup v2)',
    )
  else shared('buffers of sockets', remedy)
  say('cpu', `processor: ${limits.cpus} ${limits.cpus === 1 ? 'core' : 'cores'}`, 'processor time')
  if (controllers.has('pids')) enforced.push(`processes: ${limits.pids} (cgroup ${version})`)
  else if (drops || countsProcessesByNamespace()) enforced.push(`processes: ${limits.pids} (RLIMIT_NPROC)`)
  else notEnforced.push(`number of processes: ${remedy}`)
  if (drops) enforced.push('host user: each sandbox runs under a uid of its own that owns nothing')
  else
    notEnforced.push(
      "host user: sandboxes run under Errand's own uid, and share its kernel quotas (inotify instances, pipe buffers): run Errand as root for a uid each",
    )
  return { enforced, notEnforced }
}
