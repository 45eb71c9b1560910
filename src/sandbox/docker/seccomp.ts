/**
 * The seccomp profile of a container, in Docker's form, from the same table as bubblewrap's (../syscalls.ts): what it
 * allows is allowed here, and nothing else. The rest is EPERM; what is newer than the table runc tells to be absent.
 * Names, not numbers: libseccomp knows the architecture.
 */

import type { Profile } from '../port.ts'
import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  AF_UNIX,
  ALLOWED,
  BROWSER,
  DENIED,
  NEW_NAMESPACES,
  NEW_TIME,
  REFUSED_REQUESTS,
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
  /** All must hold. */
  readonly args?: readonly Condition[]
}

const EPERM = 1
const ENOSYS = 38
const ALL = 0xffff_ffff

const equal = (index: number, value: number): Condition => ({ index, op: 'SCMP_CMP_EQ', value })
/** Of the bits of `mask`, the argument has those of `value`. */
const masked = (index: number, mask: number, value: number): Condition => {
  return { index, op: 'SCMP_CMP_MASKED_EQ', value: mask, valueTwo: value }
}
const allow = (name: string, ...args: Condition[]): Rule => ({ names: [name], action: 'SCMP_ACT_ALLOW', args })
const refuse = (names: readonly string[], errnoRet: number): Rule => ({ names, action: 'SCMP_ACT_ERRNO', errnoRet })

export function seccompProfile(profile: Profile): string {
  const browser = profile === 'browser'
  const makes = browser ? BROWSER : { clone: 0, unshare: 0 }
  const allowed: readonly string[] = browser ? BROWSER.allowed : []
  const rules: Rule[] = [
    { names: [...ALLOWED.filter((name) => !browser || name !== 'setsockopt'), ...allowed], action: 'SCMP_ACT_ALLOW' },
    refuse(
      Object.keys(DENIED).filter((name) => !allowed.includes(name)),
      EPERM,
    ),
    refuse(['clone3'], ENOSYS),
    allow('clone', masked(0, (NEW_NAMESPACES & ~makes.clone) >>> 0, 0)),
    allow('unshare', masked(0, ((NEW_NAMESPACES | NEW_TIME) & ~makes.unshare) >>> 0, 0)),
    ...[AF_UNIX, AF_INET, AF_INET6].map((family) => allow('socket', equal(0, family))),
    ...(browser ? options() : [allow('socket', equal(0, AF_NETLINK), equal(2, 0))]),
    allow('socketpair', equal(0, AF_UNIX)),
    ...allBut(REFUSED_REQUESTS).map(({ mask, value }) => allow('ioctl', masked(1, mask, value))),
  ]
  return JSON.stringify({ defaultAction: 'SCMP_ACT_ERRNO', syscalls: rules })
}

/** No netfilter tables, whatever namespace they are of. */
function options(): Rule[] {
  const { levels, names } = BROWSER.refusedOptions
  const others = allBut(levels).map(({ mask, value }) => allow('setsockopt', masked(1, mask, value)))
  const harmless = levels.flatMap((level) =>
    allBut(names).map(({ mask, value }) => allow('setsockopt', masked(1, ALL, level), masked(2, mask, value))),
  )
  return [...others, ...harmless]
}

/**
 * Every number of 32 bits but these, as the fewest prefixes. libseccomp takes no two conditions on one argument, and a
 * plain comparison would look at its upper half as well, which the kernel does not.
 */
function allBut(numbers: readonly number[], bits = 0, prefix = 0): { mask: number; value: number }[] {
  const mask = bits === 0 ? 0 : (~0 << (32 - bits)) >>> 0
  if (!numbers.some((number) => (number & mask) >>> 0 === prefix)) return [{ mask, value: prefix }]
  if (bits === 32) return []
  const next = (1 << (31 - bits)) >>> 0
  return [...allBut(numbers, bits + 1, prefix), ...allBut(numbers, bits + 1, prefix + next)]
}
