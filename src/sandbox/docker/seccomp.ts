/**
 * The seccomp profile of a container in Docker's form, from the same table as bubblewrap's filter (../syscalls.ts). Calls
 * that the table does not allow fail with EPERM; absent ones, and with runc those newer than the table, with ENOSYS. The
 * profile has names of calls, which libseccomp translates for the architecture.
 */

import type { Profile } from '../port.ts'
import {
  ABSENT,
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  AF_UNIX,
  ALLOWED,
  BROWSER,
  DENIED,
  FADV_DONTNEED,
  INTERNET_SOCKETS,
  NEW_NAMESPACES,
  NEW_TIME,
  REFUSED_OPTIONS,
  REFUSED_REQUESTS,
  RWF_NOWAIT,
  SOCKET_TYPE,
} from '../syscalls.ts'

interface Condition {
  readonly index: number
  readonly op: 'SCMP_CMP_EQ' | 'SCMP_CMP_MASKED_EQ'
  readonly value: number
  readonly valueTwo?: number
}

interface Rule {
  readonly names: readonly string[]
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO'
  readonly errnoRet?: number
  /** All must be true. */
  readonly args?: readonly Condition[]
}

const EPERM = 1
const ENOSYS = 38
const EOPNOTSUPP = 95
const ALL = 0xffff_ffff

const equal = (index: number, value: number): Condition => ({ index, op: 'SCMP_CMP_EQ', value })
/** The argument, masked with `mask`, equals `value`. */
const masked = (index: number, mask: number, value: number): Condition => {
  return { index, op: 'SCMP_CMP_MASKED_EQ', value: mask, valueTwo: value }
}
const allow = (name: string, ...args: Condition[]): Rule => ({ names: [name], action: 'SCMP_ACT_ALLOW', args })
const refuse = (names: readonly string[], errnoRet: number, ...args: Condition[]): Rule => {
  return { names, action: 'SCMP_ACT_ERRNO', errnoRet, ...(args.length > 0 && { args }) }
}

export function seccompProfile(profile: Profile): string {
  const browser = profile === 'browser'
  const makes = browser ? BROWSER : { clone: 0, unshare: 0 }
  const allowed: readonly string[] = browser ? BROWSER.allowed : []
  const refusedOptions = { ...REFUSED_OPTIONS, ...(browser ? BROWSER.refusedOptions : {}) }
  const rules: Rule[] = [
    { names: [...ALLOWED, ...allowed], action: 'SCMP_ACT_ALLOW' },
    refuse(
      Object.keys(DENIED).filter((name) => !allowed.includes(name)),
      EPERM,
    ),
    refuse(Object.keys(ABSENT), ENOSYS),
    allow('clone', masked(0, (NEW_NAMESPACES & ~makes.clone) >>> 0, 0)),
    allow('unshare', masked(0, ((NEW_NAMESPACES | NEW_TIME) & ~makes.unshare) >>> 0, 0)),
    allow('socket', equal(0, AF_UNIX)),
    ...[AF_INET, AF_INET6].flatMap((family) =>
      INTERNET_SOCKETS.map(([type, protocol]) =>
        allow('socket', equal(0, family), masked(1, SOCKET_TYPE, type), equal(2, protocol)),
      ),
    ),
    refuse(['socket'], ENOSYS, equal(0, AF_NETLINK)),
    allow('socketpair', equal(0, AF_UNIX)),
    ...options(refusedOptions),
    ...allBut(REFUSED_REQUESTS).map(({ mask, value }) => allow('ioctl', masked(1, mask, value))),
    allow('preadv2', masked(5, RWF_NOWAIT, 0)),
    refuse(['preadv2'], EOPNOTSUPP, masked(5, RWF_NOWAIT, RWF_NOWAIT)),
    ...allBut([FADV_DONTNEED]).map(({ mask, value }) => allow('fadvise64', masked(3, mask, value))),
    refuse(['fadvise64'], 0, masked(3, ALL, FADV_DONTNEED)),
  ]
  return JSON.stringify({ defaultAction: 'SCMP_ACT_ERRNO', syscalls: rules })
}

/** Allows every socket option except those `refused`, by level. */
function options(refused: typeof REFUSED_OPTIONS): Rule[] {
  const levels = Object.keys(refused).map(Number)
  const others = allBut(levels).map(({ mask, value }) => allow('setsockopt', masked(1, mask, value)))
  const harmless = levels.flatMap((level) =>
    allBut(refused[level]!).map(({ mask, value }) =>
      allow('setsockopt', masked(1, ALL, level), masked(2, mask, value)),
    ),
  )
  return [...others, ...harmless]
}

/**
 * All 32-bit numbers except these, as the fewest bit prefixes. libseccomp accepts only one condition on an argument, and a
 * plain comparison would include the upper half of the argument, which the kernel ignores.
 */
function allBut(numbers: readonly number[], bits = 0, prefix = 0): { mask: number; value: number }[] {
  const mask = bits === 0 ? 0 : (~0 << (32 - bits)) >>> 0
  if (!numbers.some((number) => (number & mask) >>> 0 === prefix)) return [{ mask, value: prefix }]
  if (bits === 32) return []
  const next = (1 << (31 - bits)) >>> 0
  return [...allBut(numbers, bits + 1, prefix), ...allBut(numbers, bits + 1, prefix + next)]
}
