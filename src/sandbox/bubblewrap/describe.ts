/** Describes what the driver enforces on this machine, and what it does not. */

import type { Cgroups } from '../cgroups.ts'
import { socketMiB, TERMINALS } from '../inside.ts'
import type { SandboxLimits } from '../port.ts'
import { sharedKernel } from '../shared-kernel.ts'
import type { CellMounts } from './mounts.ts'
import { countsProcessesByNamespace, processMemoryMiB } from './rlimits.ts'

export function describe(
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
