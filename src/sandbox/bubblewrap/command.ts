/** The command line of a cell: joined to its cgroups, dropped to its uid, then bubblewrap with the runner as PID 1. */
import { OPEN_FILES } from '../driver.ts'
import { ENVIRONMENT, RUNNER_INSIDE } from '../inside.ts'
import type { Profile } from '../port.ts'

/** Joins the groups named before `--`, then becomes what stands behind it. Children inherit both limits. */
export const LAUNCH_SCRIPT = `ulimit -c 0; ulimit -n ${OPEN_FILES}
while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done
shift; exec "$@"`

const SECCOMP_FD = 3
const INFO_FD = 4

export interface CellOptions {
  /** The arguments that make the root, with its /proc and /dev. */
  readonly root: readonly string[]
  /** Those that make the writable places. */
  readonly places: readonly string[]
  readonly python: string
  /** The runner's program, inside. */
  readonly runner: string
  readonly profile: Profile
  readonly rlimits: Readonly<Record<string, number>>
}

export function bubblewrapArguments({ root, places, python, runner, profile, rlimits }: CellOptions): string[] {
  return [
    ...NAMESPACES,
    // Chromium puts its renderers into namespaces of their own; what else it may do with them, the filter says.
    ...(profile === 'browser' ? [] : ['--disable-userns']),
    ...['--uid', '1000', '--gid', '1000', '--hostname', 'sandbox', '--cap-drop', 'ALL'],
    ...environment(),
    ...root,
    ...places,
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/workspace'],
    ...['--seccomp', `${SECCOMP_FD}`, '--info-fd', `${INFO_FD}`],
    ...['--', python, '-I', '-S', runner, JSON.stringify({ rlimits })],
  ]
}

/** What the template does to its children: namespaces and mounts, a uid, the loopback. */
const TEMPLATE_RIGHTS = ['CAP_SYS_ADMIN', 'CAP_SETUID', 'CAP_SETGID', 'CAP_NET_ADMIN']
/** The template's own: its children get another one. */
const TEMPLATE_PLACE = '/run/errand'

export interface TemplateCommand {
  /** The arguments that make the root, with its /proc and /dev. */
  readonly root: readonly string[]
  /** Directories of the host, and where the template finds them, below TEMPLATE_PLACE. */
  readonly given: readonly (readonly [source: string, target: string])[]
  /** As seen inside, and a copy of it that can be run and not be opened (see `executableOnly` in programs.ts). */
  readonly python: { readonly path: string; readonly file: string; readonly copy: string }
  readonly program: string
  /** The directory of the socket that children connect to. */
  readonly door: string
  /** Descriptors of the outer bubblewrap; `block`: it waits there until its uids are mapped. */
  readonly fds: { readonly info: number; readonly block: number }
  /** Python modules to import at the start, if the root has them. */
  readonly modules: readonly string[]
}

/** The outer sandbox of a template: root of a user namespace of its own, with the few rights that children are made with. */
export function templateArguments({ root, given, python, program, door, fds, modules }: TemplateCommand): string[] {
  const { info, block } = fds
  return [
    ...NAMESPACES,
    ...['--uid', '0', '--gid', '0', '--hostname', 'template', '--cap-drop', 'ALL'],
    ...TEMPLATE_RIGHTS.flatMap((right) => ['--cap-add', right]),
    ...environment(),
    ...root,
    ...['--ro-bind', python.copy, python.file, '--tmpfs', TEMPLATE_PLACE, '--dir', `${TEMPLATE_PLACE}/stage`],
    ...given.flatMap(([source, target]) => ['--dev-bind', source, target]),
    ...['--ro-bind', door, `${TEMPLATE_PLACE}/door`, '--ro-bind', program, `${TEMPLATE_PLACE}/template.py`],
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/workspace'],
    ...['--info-fd', `${info}`, '--userns-block-fd', `${block}`],
    ...['--', python.path, '-I', '-S', `${TEMPLATE_PLACE}/template.py`, RUNNER_INSIDE, ...modules],
  ]
}

const NAMESPACES = [
  ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--die-with-parent', '--new-session', '--as-pid-1', '--clearenv'],
]

function environment(): string[] {
  return Object.entries(ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value])
}
