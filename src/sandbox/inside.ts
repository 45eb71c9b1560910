/** What code finds inside, whatever made the sandbox: where the pieces stand that Errand brings in, and the environment. */
import type { SandboxLimits } from './port.ts'

export const RUNNER_INSIDE = '/errand/runner.py'
export const NODE_INSIDE = '/errand/bin/node'

/** Where pip puts programs. The last place to look, so that nothing there replaces a program of the system. */
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
  // Nothing of the system can be broken: pip installs into the user's own folder. Without a network it has no index.
  PIP_BREAK_SYSTEM_PACKAGES: '1',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIP_NO_CACHE_DIR: '1',
  PIP_NO_INDEX: '1',
}

/** What takes Python long to import and much code wants: there are cells that have it loaded, as far as the root has it. */
export const PRELOADED = ['numpy', 'pandas', 'matplotlib.pyplot', 'matplotlib.backends.backend_agg']

/** Processes of our own in a sandbox: the runner, a keeper for each language, and what makes the sandbox. */
export const OWN_PROCESSES = 6

/** For the buffers of its sockets, where they are not counted with its other memory. */
export const socketMiB = ({ memoryMiB }: SandboxLimits): number => Math.min(64, Math.ceil(memoryMiB / 4))

/** Terminals that a sandbox can have open: the machine has 4,096 (kernel.pty.max). */
export const TERMINALS = 64

/** inotify instances and watches of a sandbox, where sandboxes share the allowance of one user. */
export const INOTIFY = { instances: 8, watches: 8192 }

/** Signals that can be queued and POSIX timers that can exist, and bytes of POSIX message queues, in a sandbox; likewise. */
export const PENDING_SIGNALS = 4096
export const MESSAGE_QUEUE_BYTES = 819_200

/**
 * Files and directories of /proc that count for the whole machine, or show what others hold, and that programs do without.
 * `stat`, `meminfo`, `loadavg`, `uptime` and `cpuinfo` stay: libraries size themselves by them, and sysinfo(2) shows the same.
 */
export const MASKED_PROC = {
  files: [
    ...['buddyinfo', 'diskstats', 'interrupts', 'key-users', 'locks', 'schedstat', 'softirqs', 'vmstat', 'zoneinfo'],
    ...['aio-nr', 'dentry-state', 'file-nr', 'inode-nr', 'inode-state'].map((name) => `sys/fs/${name}`),
    'sys/kernel/pty/nr',
  ].map((name) => `/proc/${name}`),
  directories: ['/proc/pressure'],
}

/** For the places that no program needs many files in. */
const FEW_FILES = 2048
const TMP_MIB = 64
const PRIVATE_MIB = 8

/** What can be written to: a tmpfs, bounded in bytes and in number of files. */
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
