/**
 * Limits on memory, processor and processes by control groups: version 1, version 2 if it is delegated, or none. All groups
 * of a host are in one directory with its name (`errand-<hash>`), which distinguishes the remains of its dead predecessor
 * from groups that another host on the machine uses.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Counters } from './driver.ts'
import { OWN_PROCESSES, socketMiB } from './inside.ts'
import type { SandboxLimits } from './port.ts'

export interface Group {
  /** Files to which a process writes its pid to join the group. */
  readonly joinFiles: readonly string[]
  /** Adds a process. Throws if it has ended or belongs to another user. */
  join(pid: number): void
  counters(): Counters
  /** Kills all processes in it and removes it. Throws if it is not empty after 10 s. */
  remove(): Promise<void>
}

export interface Cgroups {
  readonly version: 'v1' | 'v2' | 'none'
  readonly controllers: ReadonlySet<Controller>
  /** True if socket buffers are limited. */
  readonly countsSockets: boolean
  /** Undefined if there are no control groups here. */
  create(id: string, limits: SandboxLimits): Group | undefined
  /** Removes every group of this host that is not in use. */
  sweep(): Promise<void>
  close(): Promise<void>
}

export type Controller = 'memory' | 'pids' | 'cpu'
const CONTROLLERS: readonly Controller[] = ['memory', 'pids', 'cpu']

const CPU_PERIOD_US = 100_000
const MIB = 1024 * 1024

export interface CgroupPlaces {
  readonly version: 'v1' | 'v2'
  /** Controller → the directory in which groups can be made. */
  readonly bases: ReadonlyMap<Controller, string>
}

export function openCgroups(name: string, places: CgroupPlaces | undefined = findPlaces()): Cgroups {
  const homes = new Map<Controller, string>()
  for (const [controller, base] of places?.bases ?? []) {
    const home = join(base, name)
    try {
      mkdirSync(home, { recursive: true })
      homes.set(controller, home)
    } catch {
      // Not permitted: reported as not enforced.
    }
  }
  if (places?.version === 'v2') for (const home of new Set(homes.values())) enable(home)
  const used = new Set<string>()
  const version = homes.size > 0 ? places!.version : 'none'
  const distinctHomes = () => [...new Set(homes.values())]

  return {
    version,
    controllers: new Set(homes.keys()),
    countsSockets: homes.has('memory') && (version === 'v2' || existsSync(join(homes.get('memory')!, SOCKETS_FILE))),
    create(id, limits) {
      if (homes.size === 0) return undefined
      used.add(id)
      const directories = distinctHomes().map((home) => join(home, id))
      for (const directory of directories) mkdirSync(directory)
      for (const [controller, home] of homes) setLimit(version, controller, join(home, id), limits)
      const joinFiles = directories.map((directory) => join(directory, 'cgroup.procs'))
      return {
        joinFiles,
        join: (pid) => {
          for (const file of joinFiles) writeFileSync(file, String(pid))
        },
        counters: () =>
          readCounters(version, (controller) => homes.get(controller) && join(homes.get(controller)!, id)),
        remove: async () => {
          await Promise.all(directories.map(removeGroup))
          used.delete(id)
        },
      }
    },
    async sweep() {
      const left = distinctHomes().flatMap((home) =>
        directoriesIn(home)
          .filter((id) => !used.has(id))
          .map((id) => join(home, id)),
      )
      await Promise.all(left.map(removeGroup))
    },
    async close() {
      await Promise.all(distinctHomes().map(removeGroup))
    },
  }
}

function setLimit(version: string, controller: Controller, directory: string, limits: SandboxLimits): void {
  const bytes = String(limits.memoryMiB * MIB)
  const quota = Math.max(1000, Math.round(limits.cpus * CPU_PERIOD_US))
  const set = (file: string, value: string, optional = false) => {
    if (!optional || existsSync(join(directory, file))) writeFileSync(join(directory, file), value)
  }
  if (controller === 'pids') set('pids.max', String(limits.pids + OWN_PROCESSES))
  else if (controller === 'cpu' && version === 'v2') set('cpu.max', `${quota} ${CPU_PERIOD_US}`)
  else if (controller === 'cpu') {
    set('cpu.cfs_period_us', String(CPU_PERIOD_US))
    set('cpu.cfs_quota_us', String(quota))
  } else if (version === 'v2') {
    set('memory.max', bytes)
    set('memory.swap.max', '0', true)
  } else {
    set('memory.limit_in_bytes', bytes)
    set('memory.memsw.limit_in_bytes', bytes, true)
    set(SOCKETS_FILE, String(socketMiB(limits) * MIB), true)
  }
}

/** Limit of TCP and UDP buffers in version 1, which counts them only if it is set. Version 2 counts them with other memory. */
const SOCKETS_FILE = 'memory.kmem.tcp.limit_in_bytes'

export const NOTHING_COUNTED: Counters = { memoryKills: 0, forksRefused: 0, periods: 0, throttled: 0 }

/** The kernel's counters of a group. Both versions use the same names, except for one file. */
function readCounters(version: string, directoryOf: (controller: Controller) => string | undefined): Counters {
  const count = (controller: Controller, file: string, name: string) => {
    const directory = directoryOf(controller)
    if (directory === undefined) return 0
    try {
      const text = readFileSync(join(directory, file), 'utf8')
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
    } catch {
      return 0
    }
  }
  return {
    memoryKills: count('memory', version === 'v2' ? 'memory.events' : 'memory.oom_control', 'oom_kill'),
    forksRefused: count('pids', 'pids.events', 'max'),
    periods: count('cpu', 'cpu.stat', 'nr_periods'),
    throttled: count('cpu', 'cpu.stat', 'nr_throttled'),
  }
}

function directoriesIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch {
    return []
  }
}

async function removeGroup(directory: string): Promise<void> {
  const until = Date.now() + 10_000
  for (;;) {
    for (const pid of processesIn(directory)) killQuietly(pid)
    try {
      rmdirSync(directory)
      return
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return
      if (code !== 'EBUSY' || Date.now() > until) throw error
    }
    await sleep(2)
  }
}

function processesIn(directory: string): number[] {
  try {
    return readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}

/** Finds the directories in which this process can make groups; undefined if there are none. */
export function findPlaces(): CgroupPlaces | undefined {
  const memberships = readMemberships('self')
  const mounts = readMounts()

  const bases = new Map<Controller, string>()
  for (const controller of CONTROLLERS) {
    const own = memberships.find((membership) => membership.controllers.includes(controller))
    const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes(controller))
    const inside = own && mount && relative(mount.root, own.path)
    if (inside !== undefined && !inside.startsWith('..')) bases.set(controller, join(mount!.point, inside))
  }
  if (bases.size > 0) return { version: 'v1', bases }

  const unified = memberships.find((membership) => membership.controllers[0] === '')
  const mount = mounts.find(({ type }) => type === 'cgroup2')
  if (!unified || !mount) return undefined
  const inside = relative(mount.root, unified.path)
  // A group with processes in it cannot enable controllers for groups below it, so the parent of this group is tried too.
  for (let base = join(mount.point, inside.startsWith('..') ? '' : inside); ; base = dirname(base)) {
    const enabled = enable(base)
    if (enabled.includes('memory') && enabled.includes('pids'))
      return { version: 'v2', bases: new Map(enabled.map((c) => [c, base])) }
    if (base === mount.point || !base.startsWith(mount.point)) return undefined
  }
}

/** Enables controllers for the groups below. Returns those that are enabled; none if no group can be made there. */
function enable(directory: string): Controller[] {
  const file = join(directory, 'cgroup.subtree_control')
  for (const controller of CONTROLLERS) {
    try {
      writeFileSync(file, `+${controller}`)
    } catch {
      // Not delegated, or prevented by processes in the group.
    }
  }
  try {
    const probe = join(directory, `errand-try-${process.pid}`)
    mkdirSync(probe)
    rmdirSync(probe)
    const enabled = readFileSync(file, 'utf8').trim().split(' ')
    return CONTROLLERS.filter((controller) => enabled.includes(controller))
  } catch {
    return []
  }
}

/** Groups that another program, such as Docker, has made. */
export interface FoundGroup {
  counters(): Counters
  /** Limits the buffers of new sockets. Does nothing with version 2, which counts them anyway, or without permission. */
  limitSockets(limits: SandboxLimits): void
}

/** Undefined if no visible group has `name` in its path. */
export function findGroup(pid: number, name: string): FoundGroup | undefined {
  const memberships = readMemberships(pid)
  const mounts = readMounts()
  const place = (type: string, controller: Controller | '') => {
    const own = memberships.find(({ controllers }) => controllers.includes(controller))
    const mount = mounts.find((found) => found.type === type && (!controller || found.options.includes(controller)))
    if (!own?.path.includes(name) || !mount) return undefined
    const directory = join(mount.point, relative(mount.root, own.path))
    return existsSync(directory) ? directory : undefined
  }
  const directories = new Map(CONTROLLERS.map((controller) => [controller, place('cgroup', controller)]))
  const memory = directories.get('memory')
  if (memory !== undefined) {
    return {
      counters: () => readCounters('v1', (controller) => directories.get(controller)),
      limitSockets(limits) {
        try {
          writeFileSync(join(memory, SOCKETS_FILE), String(socketMiB(limits) * MIB))
        } catch {
          // Reported as not enforced.
        }
      },
    }
  }
  const unified = place('cgroup2', '')
  if (unified === undefined) return undefined
  return { counters: () => readCounters('v2', () => unified), limitSockets() {} }
}

function readMemberships(process: number | 'self'): { controllers: string[]; path: string }[] {
  return readFileSync(`/proc/${process}/cgroup`, 'utf8')
    .trim()
    .split('\n')
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line)!)
    .map(([, controllers, path]) => ({ controllers: controllers!.split(','), path: path! }))
}

function readMounts() {
  return readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n').map(parseMount)
}

function parseMount(line: string): { root: string; point: string; type: string; options: string[] } {
  const [before = '', after = ''] = line.split(' - ')
  const fields = before.split(' ')
  const [type = '', , options = ''] = after.split(' ')
  return { root: fields[3] ?? '/', point: fields[4] ?? '/', type, options: options.split(',') }
}
