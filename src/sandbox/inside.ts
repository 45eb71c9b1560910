/** The inside of a sandbox, the same for all drivers: Errand's own files, environment, writable paths and quotas. */
import type { SandboxLimits } from './port.ts'

export const RUNNER_INSIDE = '/errand/runner.py'
export const NODE_INSIDE = '/errand/bin/node'

/** Directory of programs that pip installs. Last in PATH, so that none replaces a program of the system. */
export const INSTALLED_PROGRAMS = '/workspace/.local/bin'

export const ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: `/errand/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:${INSTALLED_PROGRAMS}`,
  HOME: '/workspace',
  USER: 'errand',
  PWD: '/workspace',
  HOSTNAME: 'sandbox',
  LANG: 'C.UTF-8',
  TMPDIR: '/tmp',
  TERM: 'dumb',
  MPLBACKEND: 'Agg',
  MPLCONFIGDIR: '/tmp/matplotlib',
  XDG_CACHE_HOME: '/tmp/cache',
  PYTHONDONTWRITEBYTECODE: '1',
  // pip cannot break the system: it installs into the user's own directory. Without a network it has no index.
  PIP_BREAK_SYSTEM_PACKAGES: '1',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIP_NO_CACHE_DIR: '1',
  PIP_NO_INDEX: '1',
}

/** Packages that are slow to import and often used. Preloaded cells have imported those that their root has. */
export const PRELOADED = ['numpy', 'pandas', 'matplotlib.pyplot', 'matplotlib.backends.backend_agg']

/** Errand's own processes in a sandbox: the runner, a keeper for each language, and the driver's. */
export const OWN_PROCESSES = 6

/** Memory for socket buffers, MiB, where they are not counted with the other memory. */
export const socketMiB = ({ memoryMiB }: SandboxLimits): number => Math.min(64, Math.ceil(memoryMiB / 4))

/** Maximum number of open terminals in a sandbox: the machine has 4,096 (kernel.pty.max). */
export const TERMINALS = 64

/** inotify instances and watches of a sandbox, where all sandboxes share one user's quota. */
export const INOTIFY = { instances: 8, watches: 8192 }

/** Queued signals and POSIX timers of a sandbox, and bytes of its POSIX message queues; one user's quotas too. */
export const PENDING_SIGNALS = 4096
export const MESSAGE_QUEUE_BYTES = 819_200

/**
 * Files and directories of /proc that show the whole machine or other processes, and that programs do not need. `stat`,
 * `meminfo`, `loadavg`, `uptime` and `cpuinfo` stay: libraries size themselves by them, and sysinfo(2) shows the same.
 */
export const MASKED_PROC = {
  files: [
    ...['buddyinfo', 'diskstats', 'interrupts', 'key-users', 'locks', 'schedstat', 'softirqs', 'vmstat', 'zoneinfo'],
    ...['aio-nr', 'dentry-state', 'file-nr', 'inode-nr', 'inode-state'].map((name) => `sys/fs/${name}`),
    'sys/kernel/pty/nr',
  ].map((name) => `/proc/${name}`),
  directories: ['/proc/pressure'],
}

/** Number of files in directories where no program needs many. */
const FEW_FILES = 2048
const TMP_MIB = 64
const PRIVATE_MIB = 8

/** Maximum size of one file with a long result. */
const RESULT_MIB = 32

/**
 * The file of a sandbox with the whole text of a long result, or the output of a job. `key` identifies the tool call in its
 * interaction. Below /tmp, so that no archive or commit of the workspace includes it.
 */
export function resultPath(interactionId: string, key: string): string {
  // A conversation may name files of earlier interactions, whose sandboxes are gone: names must not repeat.
  return `/tmp/errand/${`${key}-${interactionId.slice(-6)}`.replaceAll(/[^\w-]/g, '-')}.txt`
}

/** Maximum size of such a file, in bytes. It uses memory. */
export function resultBytes({ memoryMiB }: SandboxLimits): number {
  return Math.min(RESULT_MIB, Math.floor(memoryMiB / 8)) * 1024 * 1024
}

/** A path that code can write to: a tmpfs with a limit on bytes and on number of files. */
export interface WritablePath {
  readonly path: string
  readonly mebibytes: number
  readonly files: number
  readonly mode: string
}

export function writablePaths({ workspaceMiB, files }: SandboxLimits): WritablePath[] {
  const few = Math.min(files, FEW_FILES)
  return [
    { path: '/tmp', mebibytes: TMP_MIB, files, mode: '1777' },
    { path: '/dev/shm', mebibytes: TMP_MIB, files: few, mode: '1777' },
    { path: '/run/errand', mebibytes: PRIVATE_MIB, files: few, mode: '0700' },
    { path: '/workspace', mebibytes: workspaceMiB, files, mode: '0755' },
  ]
}
