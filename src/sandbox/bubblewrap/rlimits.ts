/** Limits of a process (setrlimit), where no control group sets them for the whole sandbox. */
import { release } from 'node:os'
import type { Cgroups } from '../cgroups.ts'
import { MESSAGE_QUEUE_BYTES, PENDING_SIGNALS } from '../inside.ts'
import type { SandboxLimits } from '../port.ts'

const MIB = 1024 * 1024

/** The limits that the runner sets for its sessions, in addition to the cgroup or instead of it. */
export function rlimits(limits: SandboxLimits, cgroups: Cgroups, drops: boolean): Record<string, number> {
  return {
    ...(drops || countsProcessesByNamespace() ? { RLIMIT_NPROC: limits.pids } : {}),
    RLIMIT_SIGPENDING: PENDING_SIGNALS,
    RLIMIT_MSGQUEUE: MESSAGE_QUEUE_BYTES,
    ...(cgroups.controllers.has('memory') ? {} : { RLIMIT_DATA: processMemoryMiB(limits) * MIB }),
  }
}

/** Limit of one process. Node reserves 600 MiB at its start, and could not start with less. */
export function processMemoryMiB(limits: SandboxLimits): number {
  return limits.memoryMiB + 640
}

/** RLIMIT_NPROC counts within the user namespace since Linux 5.14, and all processes of the host's user before. */
export function countsProcessesByNamespace(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  return major > 5 || (major === 5 && minor >= 14)
}
