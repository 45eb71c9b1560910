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

/** What every cell is made of, and the template of cells. */
export interface Cellar {
  /** The arguments that make the root. */
  readonly root: readonly string[]
  readonly python: string
  readonly runner: string
  readonly node: string | undefined
}

export interface CellOptions extends Cellar {
  readonly profile: Profile
  /** The arguments that make the writable places. */
  readonly writable: readonly string[]
  readonly rlimits: Readonly<Record<string, number>>
}

export function bubblewrapArguments(options: CellOptions): string[] {
  const { python, profile, writable, rlimits } = options
  return [
    ...NAMESPACES,
    // Chromium puts its renderers into namespaces of their own; what else it may do with them, the filter says.
    ...(profile === 'browser' ? [] : ['--disable-userns']),
    ...['--uid', '1000', '--gid', '1000', '--hostname', 'sandbox', '--cap-drop', 'ALL'],
    ...seenInside(options),
    ...['--ro-bind', '/dev/null', '/proc/cmdline'],
    ...writable,
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/workspace'],
    ...['--seccomp', `${SECCOMP_FD}`, '--info-fd', `${INFO_FD}`],
    ...['--', python, '-I', '-S', RUNNER_INSIDE, JSON.stringify({ rlimits })],
  ]
}

/** What the template does to its children: namespaces and mounts, a uid, the loopback. */
const TEMPLATE_RIGHTS = ['CAP_SYS_ADMIN', 'CAP_SETUID', 'CAP_SETGID', 'CAP_NET_ADMIN']
/** What bubblewrap makes by itself on its way to a mount is its owner's alone, who is not the children's user. */
const OPEN_DIRECTORIES = ['/etc', '/etc/ssl', '/errand', '/errand/bin', '/run']
/** The template's own, where the children get a place of theirs. */
const TEMPLATE_PLACE = '/run/errand'

export interface TemplateCommand extends Cellar {
  readonly program: string
  /** The directory of the socket that children connect to. */
  readonly door: string
  /** Descriptors of the outer bubblewrap; `block`: it waits there until somebody has mapped its uids. */
  readonly fds: { readonly info: number; readonly block: number }
  /** Where the children mount what they write to. */
  readonly places: readonly string[]
  /** Python modules that it imports beforehand, as far as the root has them. */
  readonly modules: readonly string[]
}

/** The outer sandbox of a template: root of a user namespace of its own, with the few rights that children are made with. */
export function templateArguments({ program, door, fds, places, modules, ...cellar }: TemplateCommand): string[] {
  const { info, block } = fds
  return [
    ...NAMESPACES,
    ...['--uid', '0', '--gid', '0', '--hostname', 'template', '--cap-drop', 'ALL'],
    ...TEMPLATE_RIGHTS.flatMap((right) => ['--cap-add', right]),
    ...OPEN_DIRECTORIES.flatMap((directory) => ['--dir', directory]),
    ...seenInside(cellar),
    ...places.flatMap((place) => ['--dir', place]),
    ...['--dir', `${TEMPLATE_PLACE}/proc`, '--bind', door, `${TEMPLATE_PLACE}/door`],
    ...['--ro-bind', program, `${TEMPLATE_PLACE}/template.py`],
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/workspace'],
    ...['--info-fd', `${info}`, '--userns-block-fd', `${block}`],
    ...['--', cellar.python, '-I', '-S', `${TEMPLATE_PLACE}/template.py`, RUNNER_INSIDE, ...modules],
  ]
}

const NAMESPACES = [
  ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--die-with-parent', '--new-session', '--as-pid-1', '--clearenv'],
]

function seenInside({ root, runner, node }: Cellar): string[] {
  return [
    ...Object.entries(ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value]),
    ...root,
    ...['--proc', '/proc', '--dev', '/dev', '--ro-bind', runner, RUNNER_INSIDE],
    ...(node === undefined ? [] : ['--ro-bind', node, NODE_INSIDE]),
  ]
}
