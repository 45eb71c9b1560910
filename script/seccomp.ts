/**
 * Prints deploy/image/seccomp.json: what a container of the image may ask of the kernel. It is what code in a sandbox may
 * (src/sandbox/syscalls.ts, an allow-list), and what a sandbox is made with. test/deploy/image.test.ts keeps the file.
 *
 *     node script/seccomp.ts >deploy/image/seccomp.json
 */
import { seccompProfile } from '../src/sandbox/docker/seccomp.ts'

interface Rule {
  readonly names: readonly string[]
  readonly action: string
}

/** By bubblewrap: namespaces, and the new root in them. By Chromium within such a one: its empty root. */
export const MAKES_SANDBOXES = ['clone', 'unshare', 'mount', 'umount2', 'pivot_root', 'sethostname', 'chroot']

/** What mount(8) tries first; where it is told to be absent, mount(2) does. */
const NEWER_MOUNTS = ['fsopen', 'fsconfig', 'fsmount', 'fspick', 'move_mount', 'open_tree', 'mount_setattr']
const ENOSYS = 38

export function imageProfile(makes: readonly string[] = MAKES_SANDBOXES): string {
  const { syscalls, ...rest } = JSON.parse(seccompProfile('code')) as { syscalls: Rule[] }
  const others = syscalls
    .map((rule) => ({
      ...rule,
      names: rule.names.filter((name) => !makes.includes(name) && !NEWER_MOUNTS.includes(name)),
    }))
    .filter(({ names }) => names.length > 0)
  const added = [
    { names: makes, action: 'SCMP_ACT_ALLOW' },
    { names: NEWER_MOUNTS, action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
  ]
  return `${JSON.stringify({ ...rest, syscalls: [...others, ...added] }, null, 2)}\n`
}

if (import.meta.main) process.stdout.write(imageProfile())
