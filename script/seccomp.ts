/**
 * Prints deploy/image/seccomp.json, the system calls that a container of the image can use: those of code in a sandbox (the allowlist
 * in src/sandbox/syscalls.ts) and those that create a sandbox. test/deploy/docker/image.test.ts keeps the file.
 *
 *     node script/seccomp.ts >deploy/image/seccomp.json
 */
import { seccompProfile } from '../src/sandbox/docker/seccomp.ts'
import { AF_NETLINK } from '../src/sandbox/syscalls.ts'

interface Rule {
  readonly names: readonly string[]
  readonly action: string
}

/** Used by bubblewrap for namespaces and their root, and by Chromium in a sandbox for its empty root. */
export const MAKES_SANDBOXES = ['clone', 'unshare', 'mount', 'umount2', 'pivot_root', 'sethostname', 'chroot']

/** Allowed with all arguments: each sandbox's own filter checks them, and outside the sandboxes only Errand runs. */
const LEFT_TO_SANDBOXES = ['fadvise64', 'preadv2', 'setsockopt']

/** The mount API that mount(8) tries first. With ENOSYS it falls back to mount(2). */
const NEWER_MOUNTS = ['fsopen', 'fsconfig', 'fsmount', 'fspick', 'move_mount', 'open_tree', 'mount_setattr']
const ENOSYS = 38
/** Only protocol 0 (routing): bubblewrap uses it to set up the loopback interface of a network namespace. */
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
