/**
 * The definition of a cell's container: no network, no capabilities, no writable root, no mount of the host, and the runner as
 * first process. Docker's defaults allow more; each setting here refuses one of the self-test's attacks.
 */

import { dirname } from 'node:path'
import { type CellShape, OPEN_FILES } from '../driver.ts'
import {
  ENVIRONMENT,
  INSTALLED_PROGRAMS,
  MASKED_PROC,
  NODE_INSIDE,
  OWN_PROCESSES,
  RUNNER_INSIDE,
  TERMINALS,
  type WritablePath,
  writablePaths,
} from '../inside.ts'
import type { Mount } from '../port.ts'
import type { CellImage } from './image.ts'

const MIB = 1024 * 1024
const CPU_PERIOD_US = 100_000
const USER = 1000
const KERNEL_THREADS = 256
const proc = (name: string) => `/proc/${name}`

/** Docker's own list, and files that show the host, its kernel or counters of the whole machine. */
const MASKED = [
  ...['acpi', 'asound', 'cmdline', 'config.gz', 'kcore', 'keys', 'kallsyms', 'latency_stats', 'modules'].map(proc),
  ...['sched_debug', 'scsi', 'sysrq-trigger', 'timer_list', 'timer_stats', 'vmallocinfo'].map(proc),
  ...MASKED_PROC.files,
  ...MASKED_PROC.directories,
]
const READ_ONLY = ['bus', 'fs', 'irq', 'sys'].map(proc)

export interface ContainerSetup {
  readonly image: CellImage
  readonly seccomp: string
  /** Undefined: the daemon's default. */
  readonly runtime: string | undefined
  /** The runtime has a kernel of its own, whose threads are counted with the sandbox's processes. */
  readonly ownKernel: boolean
  readonly labels: Readonly<Record<string, string>>
}

/** The body of `POST /containers/create`. */
export function containerOf(
  { limits, mounts }: CellShape,
  { image, seccomp, runtime, ownKernel, labels }: ContainerSetup,
): object {
  const path = image.path && `${dirname(NODE_INSIDE)}:${image.path}:${INSTALLED_PROGRAMS}`
  const env = { ...ENVIRONMENT, ...(path && { PATH: path }) }
  return {
    Image: image.id,
    Entrypoint: [image.python, '-I', '-S', RUNNER_INSIDE, '{}'],
    Cmd: [],
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    User: `${USER}:${USER}`,
    WorkingDir: '/workspace',
    Hostname: 'sandbox',
    Labels: labels,
    Healthcheck: { Test: ['NONE'] },
    StopSignal: 'SIGKILL',
    ...{ AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true, Tty: false },
    NetworkDisabled: true,
    HostConfig: {
      AutoRemove: true, // if the host dies, the runner ends with its stdin, and the container with the runner
      Init: false,
      LogConfig: { Type: 'none' },
      ...(runtime && { Runtime: runtime }),
      ...{ NetworkMode: 'none', IpcMode: 'private', CgroupnsMode: 'private', Dns: ['127.0.0.1'], DnsSearch: ['.'] },
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', `seccomp=${seccomp}`],
      MaskedPaths: MASKED,
      ReadonlyPaths: READ_ONLY,
      Tmpfs: {
        ...Object.fromEntries(image.volumes.map((path) => [path, EMPTY])),
        '/sys': EMPTY,
        '/dev/mqueue': EMPTY,
        ...Object.fromEntries(writablePaths(limits).map((place) => [place.path, tmpfs(place)])),
      },
      Mounts: [...(ownKernel ? [] : [TERMINALS_VOLUME]), ...mounts.map(bind)],
      Memory: limits.memoryMiB * MIB,
      MemorySwap: limits.memoryMiB * MIB, // the sum of memory and swap: no swap
      // Not NanoCpus: with it the daemon refuses more cores than the machine has.
      ...{ CpuPeriod: CPU_PERIOD_US, CpuQuota: Math.max(1000, Math.round(limits.cpus * CPU_PERIOD_US)) },
      PidsLimit: ownKernel ? 4 * limits.pids + KERNEL_THREADS : limits.pids + OWN_PROCESSES,
      Ulimits: [
        { Name: 'core', Soft: 0, Hard: 0 },
        { Name: 'nofile', Soft: OPEN_FILES, Hard: OPEN_FILES },
      ],
    },
  }
}

function bind({ source, target }: Mount): object {
  return {
    Type: 'bind',
    Source: source,
    Target: target,
    ReadOnly: true,
    BindOptions: { Propagation: 'rprivate' },
  }
}

/** Replaces the runtime's /dev/pts, which does not limit the number of terminals. */
const TERMINALS_VOLUME = {
  Type: 'volume',
  Target: '/dev/pts',
  VolumeOptions: {
    NoCopy: true,
    DriverConfig: {
      Name: 'local',
      Options: {
        type: 'devpts',
        device: 'devpts',
        o: `newinstance,ptmxmode=0666,mode=620,max=${TERMINALS},nosuid,noexec`,
      },
    },
  },
}

const EMPTY = 'ro,noexec,nosuid,nodev,size=4k'

function tmpfs({ mebibytes, files, mode }: WritablePath): string {
  return `rw,exec,nosuid,nodev,size=${mebibytes * MIB},nr_inodes=${files},mode=${mode},uid=${USER},gid=${USER}`
}
