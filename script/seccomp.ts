/**
 * Prints deploy/image/seccomp.json: what a container of the image may ask of the kernel. It is what code in a sandbox may
 * (src/sandbox/syscalls.ts, an allow-list), and what a sandbox is made with. test/deploy/image.test.ts keeps the file.
 *
 *     node script/seccomp.ts >deploy/image/seccomp.json
 */
import { seccompProfile } from '../src/sandbox/docker/seccomp.ts'
import { AF_NETLINK } from '../src/sandbox/syscalls.ts'

interface Rule {
  readonly names: readonly string[]
  readonly action: string
}

/** By bubblewrap: namespaces, and the new root in them. By Chromium within such a one: its empty root. */
export const MAKES_SANDBOXES = ['clone', 'unshare', 'mount', 'umount2', 'pivot_root', 'sethostname', 'chroot']

/** Their arguments are examined by each sandbox's own filter; what runs beside the sandboxes is Errand itself. */
const LEFT_TO_SANDBOXES = ['fadvise64', 'preadv2', 'setsockopt']

/** What mount(8) tries first; where it is told to be absent, mount(2) does. */
const NEWER_MOUNTS = ['fsopen', 'fsconfig', 'fsmount', 'fspick', 'move_mount', 'open_tree', 'mount_setattr']
const ENOSYS = 38
/** Protocol 0 alone, the routing table: bubblewrap sets up the loopback of a network namespace by it. */
const ROUTES = {
  names: ['socket'],
  action: 'SCMP_ACT_ALLOW',
  args: [
    { index: 0, op: 'SCMP_CMP_EQ', value: AF_NETLINK },
    { index: 2, op: 'SCMP_CMP_EQ', value: 0 },
  ],
}

export function imageProfile(makes: readonly string[] = MAKES_SANDBOXES): string {
  const { syscalls, ...rest } = JSON.parse(seccompProfile('code')) as { syscalls: Rule[] }
  const own = [...makes, ...NEWER_MOUNTS, ...LEFT_TO_SANDBOXES]
  const others = syscalls
    .map((rule) => ({ ...rule, names: rule.names.filter((name) => !own.includes(name)) }))
    .filter(({ names, action }) => names.length > 0 && !(names.includes('socket') && action === 'SCMP_ACT_ERRNO'))
  const added = [
    ROUTES,
    { names: [...makes, ...LEFT_TO_SANDBOXES], action: 'SCMP_ACT_ALLOW' },
    { names: NEWER_MOUNTS, action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
  ]
  return `${JSON.stringify({ ...rest, syscalls: [...others, ...added] }, null, 2)}\n`
}

if (import.meta.main) process.stdout.write(imageProfile())
