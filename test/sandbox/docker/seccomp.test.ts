/** Docker's seccomp profile: the same answers as bubblewrap's filter, call by call, as libseccomp would give them. */
import { describe, expect, test } from 'vitest'
import { seccompProfile } from '../../../src/sandbox/docker/seccomp.ts'
import { ABSENT, ALLOWED, DENIED, EXAMINED } from '../../../src/sandbox/syscalls.ts'

interface Rule {
  readonly names: string[]
  readonly action: string
  readonly errnoRet?: number
  readonly args?: { index: number; value: number; valueTwo?: number; op: string }[]
}

function createJudge(profile: 'code' | 'browser'): (name: string, ...values: bigint[]) => string {
  const { defaultAction, syscalls } = JSON.parse(seccompProfile(profile)) as { defaultAction: string; syscalls: Rule[] }
  return (name, ...values) => {
    const rules = syscalls.filter(({ names }) => names.includes(name))
    const holds = ({ index, op, value, valueTwo = 0 }: NonNullable<Rule['args']>[number]) => {
      const given = values[index] ?? 0n
      return op === 'SCMP_CMP_EQ' ? given === BigInt(value) : (given & BigInt(value)) === BigInt(valueTwo)
    }
    const { action, errnoRet } = rules.find(({ args = [] }) => args.every(holds)) ?? { action: defaultAction }
    return action === 'SCMP_ACT_ALLOW' ? 'allowed' : `refused ${errnoRet ?? 1}`
  }
}

describe.each(['code', 'browser'] as const)('for %s', (profile) => {
  const ask = createJudge(profile)
  const browser = profile === 'browser'

  test('what the table denies is refused, every other call is allowed', () => {
    const opened = browser ? ['chroot'] : []
    for (const name of Object.keys(DENIED)) {
      expect([name, ask(name)]).toEqual([name, opened.includes(name) ? 'allowed' : 'refused 1'])
    }
    for (const name of ALLOWED) expect([name, ask(name, 1n, 1n)]).toEqual([name, 'allowed'])
    expect(Object.keys(EXAMINED).filter((name) => ALLOWED.includes(name))).toEqual([])
    expect(ask('a call that nobody knows')).toBe('refused 1')
    for (const name of Object.keys(ABSENT)) expect([name, ask(name)]).toEqual([name, 'refused 38'])
  })

  test('namespaces are refused but for those of Chromium, threads and forks are not', () => {
    for (const flag of [0x2_0000n, 0x200_0000n, 0x400_0000n, 0x800_0000n, 0x1000_0000n, 0x2000_0000n, 0x4000_0000n]) {
      const [byClone, byUnshare] = [browser && flag >= 0x1000_0000n, browser && flag === 0x1000_0000n]
      expect([flag, ask('clone', flag | 17n)]).toEqual([flag, byClone ? 'allowed' : 'refused 1'])
      expect([flag, ask('unshare', flag)]).toEqual([flag, byUnshare ? 'allowed' : 'refused 1'])
    }
    expect([ask('clone', 17n), ask('clone', 0x003d_0f00n), ask('unshare', 0x400n)]).toEqual(Array(3).fill('allowed'))
    expect(ask('unshare', 0x80n)).toBe('refused 1')
  })

  test('sockets are unix, TCP and UDP alone; netlink is absent', () => {
    const families = [...Array(64).keys()].filter((family) => ask('socket', BigInt(family), 1n, 0n) === 'allowed')
    expect(families).toEqual([1, 2, 10])
    expect([ask('socket', 16n, 3n, 0n), ask('socketpair', 40n)]).toEqual(['refused 38', 'refused 1'])
    expect(ask('socketpair', 1n)).toBe('allowed')
    const held = [0n, 1n, 6n, 17n, 132n, 262n].map((protocol) =>
      [1n, 2n, 3n, 5n].filter((type) => ask('socket', 2n, type | 0x8_0800n, protocol) === 'allowed'),
    )
    expect(held).toEqual([[1n, 2n], [], [1n], [2n], [], []])
  })

  test('the page cache can be neither queried nor emptied', () => {
    expect([ask('preadv2', 3n, 0n, 1n, 0n, 0n, 9n), ask('preadv2', 3n, 0n, 1n, 0n, 0n, 1n)]).toEqual([
      'refused 95',
      'allowed',
    ])
    expect([0n, 3n, 4n, 5n].map((advice) => ask('fadvise64', 3n, 0n, 0n, advice))).toEqual([
      'allowed',
      'allowed',
      'refused 0',
      'allowed',
    ])
  })

  test('no keystrokes into terminals and no line disciplines, whatever the upper half of the request number', () => {
    for (const request of [0x5412n, 0x541cn, 0x5423n, 0x5412n + 2n ** 32n]) {
      expect(ask('ioctl', 0n, request)).toBe('refused 1')
    }
    for (const request of [0n, 0x5401n, 0x5411n, 0x5413n, 0x541bn, 0x5422n, 0x5424n, 0x8000_5412n, 0xffff_ffffn]) {
      expect([request, ask('ioctl', 0n, request)]).toEqual([request, 'allowed'])
    }
  })

  test('no buffers beyond the machine’s limit, no filters on sockets, no netfilter tables for a browser', () => {
    const refused = [...Array(80).keys()].filter((name) => ask('setsockopt', 3n, 1n, BigInt(name)) !== 'allowed')
    expect(refused).toEqual([26, 32, 33, 50, 51, 52])
    const tables = [0n, 41n].flatMap((level) => [64n, 65n].map((name) => ask('setsockopt', 3n, level, name)))
    expect(tables).toEqual(Array(4).fill(browser ? 'refused 1' : 'allowed'))
    for (const [level, name] of [
      [1n, 64n],
      [6n, 1n],
      [0n, 63n],
      [41n, 26n],
      [0n, 66n],
    ] as const) {
      expect(ask('setsockopt', 3n, level, name)).toBe('allowed')
    }
  })
})
