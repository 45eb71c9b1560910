/**
 * The docker driver: each cell is a container, hardened beyond Docker's defaults (container.ts), with the runner as first
 * process over attached stdio. Never uses `docker exec`.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Cell, CellShape, Driver, HostDirectory } from '../driver.ts'
import { socketMiB, TERMINALS } from '../inside.ts'
import type { SandboxLimits } from '../port.ts'
import { sharedKernel } from '../shared-kernel.ts'
import { createCell, groupOf, removeContainer } from './cell.ts'
import { containerOf } from './container.ts'
import { createEngine, type Engine, EngineError } from './engine.ts'
import { prepareImage } from './image.ts'
import type { DockerOptions } from './options.ts'
import { seccompProfile } from './seccomp.ts'

const HOST_LABEL = 'errand.host'

/** Fields of `GET /info`. */
interface Daemon {
  readonly ServerVersion: string
  readonly CgroupVersion?: string
  readonly DefaultRuntime: string
  readonly Runtimes: Readonly<Record<string, object>>
  readonly SecurityOptions?: string[] | null
  readonly MemoryLimit: boolean
  readonly SwapLimit: boolean
  readonly CpuCfsQuota: boolean
  readonly PidsLimit: boolean
}

/** Throws an Error with a sentence for the operator if no sandbox can be made here. */
export async function openDocker(options: DockerOptions & HostDirectory): Promise<Driver> {
  const engine = createEngine(options.dockerHost)
  const daemon = await engine.ask<Daemon>('GET', '/info')
  const runtime = chooseRuntime(options.runtime, daemon)
  const host = createHash('sha256').update(options.stateDir).digest('hex').slice(0, 12)
  const labels = { [HOST_LABEL]: host }
  const seccomp = { code: seccompProfile('code'), browser: seccompProfile('browser') }
  const ownKernel = OWN_KERNEL.test(runtime ?? daemon.DefaultRuntime)
  const used = new Set<string>()

  async function sweep(): Promise<void> {
    const filters = JSON.stringify({ label: [`${HOST_LABEL}=${host}`] })
    const found = await engine.ask<{ Id: string; Names: string[] }[]>('GET', '/containers/json', { all: 1, filters })
    const left = found.filter(({ Names }) => !Names.some((name) => used.has(name.replace(/^\//, ''))))
    await Promise.all(left.map(({ Id }) => removeContainer(engine, Id)))
  }
  await sweep()
  const build = { name: `errand-${host}-image`, labels }
  used.add(build.name)
  let image = await prepareImage(engine, options.image, build)
  const hint = runtime && options.runtime === 'auto' ? ` (sandbox.runtime: runc does without ${runtime})` : ''

  async function launch(shape: CellShape): Promise<Cell> {
    const name = `errand-${host}-${randomBytes(6).toString('hex')}`
    used.add(name)
    const onGone = () => used.delete(name)
    const create = () => {
      const body = containerOf(shape, { image, seccomp: seccomp[shape.profile], runtime, ownKernel, labels })
      return engine.ask<{ Id: string }>('POST', '/containers/create', { name }, body)
    }
    try {
      const { Id } = await create().catch(async (error) => {
        if (!(error instanceof EngineError) || error.status !== 404) throw error
        image = await prepareImage(engine, options.image, build) // the daemon's image was removed
        return create()
      })
      return await start(engine, Id, shape.limits, onGone)
    } catch (error) {
      onGone()
      throw error instanceof EngineError ? new Error(`Docker: ${error.message}${hint}`, { cause: error }) : error
    }
  }

  return {
    name: 'docker',
    selfTestExceptions: ownKernel ? WITHIN_OWN_KERNEL : [],
    launch,
    sweep,
    describeLimits: (limits) => describe(limits, daemon, runtime ?? daemon.DefaultRuntime, ownKernel),
    async close() {},
  }
}

async function start(engine: Engine, container: string, limits: SandboxLimits, onGone: () => void): Promise<Cell> {
  try {
    const wire = await engine.attach(container)
    await engine.ask('POST', `/containers/${container}/start`)
    const group = await groupOf(engine, container)
    group?.limitSockets(limits)
    return createCell(engine, container, wire, group, onGone)
  } catch (error) {
    await removeContainer(engine, container)
    throw error
  }
}

/** Prefers gVisor's runtime: a kernel of its own for each sandbox is worth the cost. */
function chooseRuntime(wanted: string, { Runtimes }: Daemon): string | undefined {
  if (wanted === 'auto') return 'runsc' in Runtimes ? 'runsc' : undefined
  if (wanted in Runtimes) return wanted
  throw new Error(
    `sandbox.runtime: this Docker has no runtime ${wanted}; it has ${Object.keys(Runtimes).join(', ')}. Add it to /etc/docker/daemon.json.`,
  )
}

const OWN_KERNEL = /runsc|gvisor|kata|firecracker/i

/**
 * Attacks that a sandbox with a kernel of its own need not refuse, because they reach only that kernel. gVisor applies no
 * seccomp filter by default, supports neither nr_inodes nor PR_SET_DUMPABLE, and emulates devices and the kernel's command
 * line.
 */
const WITHIN_OWN_KERNEL = [
  ...['user', 'mount'].flatMap((kind) =>
    ['unshare', 'clone', 'clone3'].map((call) => `a new ${kind} namespace (${call})`),
  ),
  ...['ptrace', 'io_uring_setup', 'a higher priority', 'making a device', 'devices of the host'],
  ...["the runner's file descriptors", "the runner's environment", "the host's command line"],
  ...['escaping the memory killer', 'files without end', 'new privileges', 'calls past seccomp'],
  ...['asynchronous I/O (io_setup)', 'a netlink socket', 'terminals without end', 'counters of the whole machine'],
  'whether a file of the root is in memory',
]

function describe(limits: SandboxLimits, daemon: Daemon, runtime: string, ownKernel: boolean) {
  const options = (daemon.SecurityOptions ?? []).map((option) => /name=([\w-]+)/.exec(option)?.[1])
  const version = `cgroup v${daemon.CgroupVersion ?? 1}`
  const enforced = [
    'network: none (an empty network namespace)',
    'files: the root is read-only; nothing of the host is seen',
    ownKernel
      ? `system calls: answered by ${runtime}, never by the host's kernel; no capability`
      : 'system calls: seccomp filter, no capability, no new privileges, no further namespaces',
    `workspace: ${limits.workspaceMiB} MiB; /tmp and /dev/shm: 64 MiB each`,
  ]
  const notEnforced: string[] = []
  const add = (isEnforced: boolean, fact: string, missing: string) =>
    isEnforced ? enforced.push(fact) : notEnforced.push(missing)
  const remedy = 'this Docker reports that its kernel or cgroups cannot limit it'
  add(
    daemon.MemoryLimit,
    `memory: ${limits.memoryMiB} MiB, files of the workspace included (${version})`,
    `memory: ${remedy}`,
  )
  add(daemon.SwapLimit, 'swap: none', `swap: ${remedy}`)
  add(
    daemon.CpuCfsQuota,
    `processor: ${limits.cpus} ${limits.cpus === 1 ? 'core' : 'cores'} (${version})`,
    `processor time: ${remedy}`,
  )
  add(
    !ownKernel,
    `number of files: ${limits.files} in the workspace, as many in /tmp`,
    `number of files: bounded by memory alone (${runtime})`,
  )
  add(
    daemon.PidsLimit && !ownKernel,
    `processes: ${limits.pids} (${version})`,
    `number of processes: ${ownKernel ? `too many end the whole sandbox (${runtime}'s own threads are counted with them)` : remedy}`,
  )
  if (ownKernel) enforced.push(`kernel: one of its own for each sandbox (${runtime})`)
  else notEnforced.push(...sharedKernel(runtime))
  if (ownKernel) return { enforced, notEnforced }
  enforced.push(`terminals: ${TERMINALS}`)
  add(
    daemon.CgroupVersion === '2' || process.getuid?.() === 0,
    daemon.CgroupVersion === '2'
      ? 'buffers of sockets: counted with the memory (cgroup v2)'
      : `buffers of sockets: ${socketMiB(limits)} MiB (cgroup v1)`,
    'buffers of sockets: run Errand as root, or Docker on cgroup v2',
  )
  notEnforced.push(
    'kernel quotas: all sandboxes are one user to the kernel, so one can use up the others’ inotify instances, queued signals and pipe buffers: take gVisor, or bubblewrap as root',
  )
  add(
    options.includes('userns') || options.includes('rootless'),
    'host user: root and users inside are nobody outside (user namespace)',
    "host user: sandboxes run under the host's uid 1000: start the daemon with userns-remap, or rootless",
  )
  return { enforced, notEnforced }
}
