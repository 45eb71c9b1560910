/**
 * The bubblewrap driver. Each cell has fresh user, mount, pid, network, ipc, uts and cgroup namespaces, no capability, a
 * seccomp filter, a read-only root, and limits by cgroup. As root, each cell also has a host uid of its own that owns nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cgroups, type Group, openCgroups } from '../cgroups.ts'
import type { Cell, CellShape, Driver, FasterDriver, HostDirectory, PreloadedDriver } from '../driver.ts'
import { PRELOADED } from '../inside.ts'
import type { Profile } from '../port.ts'
import { runnerSource } from '../python-bundle.ts'
import { createCell } from './cell.ts'
import { bubblewrapArguments, LAUNCH_SCRIPT, templateArguments } from './command.ts'
import { describe } from './describe.ts'
import { type ForkServer, openForkServer } from './fork-server.ts'
import { type CellMounts, createMounts } from './mounts.ts'
import type { BubblewrapOptions } from './options.ts'
import { findBubblewrap, findPython, findTree } from './prerequisites.ts'
import { compileRunner, executableOnly, placeTemplate } from './programs.ts'
import { rlimits } from './rlimits.ts'
import { prepareRoot } from './rootfs.ts'
import { type Architecture, seccompProgram } from './seccomp.ts'
import { TEMPLATE_FDS } from './template.ts'
import { dropTo, freeSlot, UIDS_PER_HOST, uidRange } from './uids.ts'

/** The parts that all cells of a host share. */
interface Setup {
  readonly bwrap: string
  /** Path of Python inside. */
  readonly python: string
  /** Path of the runner inside. */
  readonly runner: () => string
  readonly rootfs: string | undefined
  /** A directory that every uid can read and only the host can write. */
  readonly scratch: string
  /** Undefined: cells run under the host's own uid. */
  readonly firstUid: number | undefined
  readonly cgroups: Cgroups
  readonly mounts: CellMounts
  /** Seccomp programs, and the files that they are in. */
  readonly filters: Readonly<Record<Profile, Buffer>>
  readonly filterFiles: Readonly<Record<Profile, string>>
}

type Launch = (shape: CellShape, slot: number, group: Group | undefined, onGone: () => void) => Promise<Cell>

/** Throws an Error with a sentence for the operator if no sandbox can be made here. */
export async function openBubblewrap(options: BubblewrapOptions & HostDirectory): Promise<Driver> {
  const setup = await prepare(options)
  const { cgroups, mounts, scratch } = setup
  const slots = new Set<number>()
  let count = 0

  async function launchIn(shape: CellShape, launch: Launch): Promise<Cell> {
    const group = cgroups.create(`${Date.now().toString(36)}-${++count}`, shape.limits)
    const slot = freeSlot(slots)
    try {
      return await launch(shape, slot, group, () => slots.delete(slot))
    } catch (error) {
      slots.delete(slot)
      await group?.remove()
      throw error
    }
  }

  const common: Pick<Driver, 'name' | 'selfTestExceptions' | 'describeLimits' | 'sweep'> = {
    name: 'bubblewrap',
    selfTestExceptions: exceptionsOf(mounts),
    describeLimits: (limits) => describe(limits, cgroups, setup.firstUid !== undefined, mounts),
    sweep: () => cgroups.sweep(),
  }

  async function openFaster(): Promise<FasterDriver> {
    const forks = await openForks(setup, 'door', [], true)
    return {
      ...common,
      made: 'forked from a template',
      canMake: ({ mounts }) => mounts.length === 0,
      launch: (shape) => launchIn(shape, forks.launch),
      openPreloaded,
      close: forks.close,
    }
  }

  async function openPreloaded(): Promise<PreloadedDriver> {
    const forks = await openForks(setup, 'door-preloaded', PRELOADED, false)
    return {
      ...common,
      made: 'forked from a template with packages loaded',
      ready: forks.ready,
      launch: (shape) => launchIn(shape, forks.launch),
      close: forks.close,
    }
  }

  return {
    ...common,
    made: 'each by a bubblewrap of its own',
    launch: (shape) =>
      launchIn(shape, async (_, slot, group, onGone) => createCell(start(setup, group, slot, shape), group, onGone)),
    faster: { use: options.forkServer, setting: 'sandbox.forkServer', open: openFaster },
    async close() {
      await cgroups.close()
      rmSync(scratch, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

async function prepare({
  stateDir,
  rootfs: configured,
  dockerHost,
}: BubblewrapOptions & HostDirectory): Promise<Setup> {
  const bwrap = findBubblewrap()
  const rootfs = await findTree(configured, dockerHost, stateDir)
  const python = findPython(rootfs)
  const hash = createHash('sha256').update(stateDir).digest('hex').slice(0, 12)
  const firstUid = process.getuid?.() === 0 ? uidRange(hash) : undefined
  const scratch = makeScratch(firstUid === undefined ? join(stateDir, 'run') : `/run/errand-${hash}`)
  const cgroups = openCgroups(`errand-${hash}`)
  await cgroups.sweep()
  const filterFiles = { code: join(scratch, 'seccomp.bpf'), browser: join(scratch, 'seccomp-browser.bpf') }
  const filters = {
    code: seccompProgram(process.arch as Architecture, 'code'),
    browser: seccompProgram(process.arch as Architecture, 'browser'),
  }
  for (const profile of ['code', 'browser'] as const) writeFileSync(filterFiles[profile], filters[profile])
  const root = prepareRoot({ rootfs, scratch, stateDir, runner: runnerSource() })
  const runner = compileRunner(root.layers[0]!, rootfs)
  const uidOf = firstUid === undefined ? undefined : (slot: number) => firstUid + slot
  const mounts = createMounts({ scratch, root, uidOf })
  return { bwrap, python, runner, rootfs, scratch, firstUid, cgroups, mounts, filters, filterFiles }
}

/** A directory that every uid can read and only the host can write. */
function makeScratch(path: string): string {
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true, mode: 0o755 })
  chmodSync(path, 0o755)
  return path
}

/** Attacks that cannot be refused where some mounts are not possible. */
function exceptionsOf(mounts: CellMounts): string[] {
  return [
    ...(mounts.countsFiles ? [] : ['files without end']),
    ...(mounts.opensSettings ? ['writing to the settings of its own namespaces'] : []),
    ...(mounts.ownsRoot ? [] : ["another sandbox's locks on files of the root"]),
    ...(mounts.ownsDevices ? [] : ["another sandbox's locks on devices"]),
    ...(mounts.countsTerminals ? [] : ['terminals without end']),
  ]
}

/** Starts a cell whole: joined to its cgroups, its mounts, its uid, then bubblewrap. */
function start(setup: Setup, group: Group | undefined, slot: number, shape: CellShape): ChildProcess {
  const { limits, profile } = shape
  const { bwrap, python, runner, firstUid, cgroups } = setup
  const { before, root, places } = setup.mounts.prepare(slot, limits, shape.mounts)
  const inner = { python, runner: runner(), profile, rlimits: rlimits(limits, cgroups, firstUid !== undefined) }
  const command = [
    ...(group?.joinFiles ?? []),
    '--',
    ...before,
    ...(firstUid === undefined ? [] : dropTo(firstUid + slot)),
    bwrap,
    ...bubblewrapArguments({ ...inner, root, places }),
  ]
  const filterFd = openSync(setup.filterFiles[profile], 'r')
  try {
    return spawn('/bin/sh', ['-c', LAUNCH_SCRIPT, 'errand', ...command], {
      stdio: ['pipe', 'pipe', 'pipe', filterFd, 'pipe'],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      detached: true, // only the server handles a ^C on the terminal
    })
  } finally {
    closeSync(filterFd)
  }
}

/** `name`: directory of its socket. */
async function openForks(
  setup: Setup,
  name: string,
  modules: readonly string[],
  waitsForTemplate: boolean,
): Promise<ForkServer> {
  const { firstUid, scratch, cgroups } = setup
  if (firstUid === undefined) throw new Error('a fork-server needs root, for a host user to each sandbox')
  const program = placeTemplate(scratch)
  const door = join(scratch, name)
  mkdirSync(door, { recursive: true })
  const { before, root, given, plan } = setup.mounts.prepareTemplate()
  const python = executableOnly(scratch, setup.rootfs, setup.python)
  const command = [
    ...before,
    ...dropTo(firstUid),
    setup.bwrap,
    ...templateArguments({ root, given, python, program, door, fds: TEMPLATE_FDS, modules }),
  ]
  return openForkServer({
    template: { command, uids: { first: firstUid, count: UIDS_PER_HOST }, filters: setup.filters, plan },
    rlimits: ({ limits }) => rlimits(limits, cgroups, true),
    door: join(door, 'socket'),
    waitsForTemplate,
  })
}
