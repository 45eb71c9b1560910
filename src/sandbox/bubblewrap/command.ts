/** The command line of a cell: joined to its cgroups, dropped to its uid, then bubblewrap with the runner as PID 1. */
import { OPEN_FILES } from '../driver.ts'
import { ENVIRONMENT, NODE_INSIDE, RUNNER_INSIDE } from '../inside.ts'
import type { Profile } from '../port.ts'

/** Joins the groups named before `--`, then becomes what stands behind it. Children inherit both limits. */
export const LAUNCH_SCRIPT = `ulimit -c 0; ulimit -n ${OPEN_FILES}
while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done
shift; exec "$@"`

const SECCOMP_FD = 3
const INFO_FD = 4

export interface Cellar {
  readonly root: readonly string[]
  readonly python: string
  readonly runner: string
  readonly node: string | undefined
  readonly profile: Profile
  /** The arguments that make the writable places. */
  readonly writable: readonly string[]
  readonly rlimits: Readonly<Record<string, number>>
}

export function bubblewrapArguments({ root, python, runner, node, profile, writable, rlimits }: Cellar): string[] {
  return [
    ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
    // Chromium puts its renderers into namespaces of their own; what else it may do with them, the filter says.
    ...(profile === 'browser' ? [] : ['--disable-userns']),
    ...['--uid', '1000', '--gid', '1000', '--hostname', 'sandbox'],
    ...['--die-with-parent', '--new-session', '--as-pid-1', '--cap-drop', 'ALL', '--clearenv'],
    ...Object.entries(ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value]),
    ...root,
    ...['--proc', '/proc', '--ro-bind', '/dev/null', '/proc/cmdline', '--dev', '/dev'],
    ...writable,
    ...['--ro-bind', runner, RUNNER_INSIDE],
    ...(node === undefined ? [] : ['--ro-bind', node, NODE_INSIDE]),
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/workspace'],
    ...['--seccomp', `${SECCOMP_FD}`, '--info-fd', `${INFO_FD}`],
    ...['--', python, '-I', '-S', RUNNER_INSIDE, JSON.stringify({ rlimits })],
  ]
}
