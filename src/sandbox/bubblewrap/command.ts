/** Command lines of a cell and of a template: bubblewrap with its arguments, around the runner as PID 1. */
import { OPEN_FILES } from '../driver.ts'
import { ENVIRONMENT, RUNNER_INSIDE } from '../inside.ts'
import type { Profile } from '../port.ts'

/** Joins the cgroups listed before `--` and executes the command after it. Children inherit groups and limits. */
export const LAUNCH_SCRIPT = `ulimit -c 0; ulimit -n ${OPEN_FILES}
while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done
shift; exec "$@"`

const SECCOMP_FD = 3
const INFO_FD = 4

export interface CellOptions {
  /** Arguments for the root, with /proc and /dev. */
  readonly root: readonly string[]
  /** Arguments for the writable paths. */
  readonly places: readonly string[]
  readonly python: string
  /** Path of the runner inside. */
  readonly runner: string
  readonly profile: Profile
  readonly rlimits: Readonly<Record<string, number>>
}

export function bubblewrapArguments({ root, places, python, runner, profile, rlimits }: CellOptions): string[] {
  return [
    ...NAMESPACES,
    // Chromium puts its renderers into namespaces of their own; the seccomp filter limits their use.
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

/** Capabilities that the template needs for its children's namespaces and mounts, uid and loopback. */
const TEMPLATE_RIGHTS = ['CAP_SYS_ADMIN', 'CAP_SETUID', 'CAP_SETGID', 'CAP_NET_ADMIN']
/** A directory of the template; its children get another one under that path. */
const TEMPLATE_DIRECTORY = '/run/errand'

export interface TemplateCommand {
  /** Arguments for the root, with /proc and /dev. */
  readonly root: readonly string[]
  /** Directories of the host that are mounted below TEMPLATE_DIRECTORY. */
  readonly given: readonly (readonly [source: string, target: string])[]
  /** Path inside, its file in the root, and the copy from `executableOnly` (programs.ts) that covers the file. */
  readonly python: { readonly path: string; readonly file: string; readonly copy: string }
  readonly program: string
  /** Directory of the socket that children connect to. */
  readonly door: string
  /** Descriptors of the outer bubblewrap. It waits on `block` until its uids are mapped. */
  readonly fds: { readonly info: number; readonly block: number }
  /** Python modules to import at the start, if the root has them. */
  readonly modules: readonly string[]
}

/** Arguments for the outer sandbox of a template: root of its own user namespace, with few capabilities. */
export function templateArguments({ root, given, python, program, door, fds, modules }: TemplateCommand): string[] {
  const { info, block } = fds
  return [
    ...NAMESPACES,
    ...['--uid', '0', '--gid', '0', '--hostname', 'template', '--cap-drop', 'ALL'],
    ...TEMPLATE_RIGHTS.flatMap((right) => ['--cap-add', right]),
    ...environment(),
    ...root,
    ...['--ro-bind', python.copy, python.file, '--tmpfs', TEMPLATE_DIRECTORY, '--dir', `${TEMPLATE_DIRECTORY}/stage`],
    ...given.flatMap(([source, target]) => ['--dev-bind', source, target]),
    ...['--ro-bind', door, `${TEMPLATE_DIRECTORY}/door`, '--ro-bind', program, `${TEMPLATE_DIRECTORY}/template.py`],
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/workspace'],
    ...['--info-fd', `${info}`, '--userns-block-fd', `${block}`],
    ...['--', python.path, '-I', '-S', `${TEMPLATE_DIRECTORY}/template.py`, RUNNER_INSIDE, ...modules],
  ]
}

const NAMESPACES = [
  ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--die-with-parent', '--new-session', '--as-pid-1', '--clearenv'],
]

function environment(): string[] {
  return Object.entries(ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value])
}
