/** The seccomp program: its table against libseccomp's, and what it answers, call by call. */
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { ARCHITECTURES, type Architecture, seccompProgram } from '../../../src/sandbox/bubblewrap/seccomp.ts'
import { ABSENT, ALLOWED, DENIED, EXAMINED, NEWEST } from '../../../src/sandbox/syscalls.ts'

const RESOLVER_NAMES = { x64: 'x86_64', arm64: 'aarch64' } as const
const ALLOW = 0x7fff_0000
const KILL = 0x8000_0000
const [DONE, EPERM, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT] = [0, 1, 38, 93, 95, 97].map(
  (errno) => 0x0005_0000 | errno,
) as [number, number, number, number, number, number]

/** The number of a call by libseccomp (Debian's package `seccomp`); undefined where the architecture has none. */
function numberOf(name: string, architecture: Architecture): number | undefined {
  const number = Number(
    execFileSync('scmp_sys_resolver', ['-a', RESOLVER_NAMES[architecture], name], { encoding: 'utf8' }),
  )
  return number < 0 ? undefined : number
}

function nameOf(number: number, architecture: Architecture): string | undefined {
  const arguments_ = ['-a', RESOLVER_NAMES[architecture], `${number}`]
  const name = execFileSync('scmp_sys_resolver', arguments_, { encoding: 'utf8' }).trim()
  return name === 'UNKNOWN' ? undefined : name
}

describe.each(['x64', 'arm64'] as const)('on %s', (architecture) => {
  const { column, audit } = ARCHITECTURES[architecture]
  const evaluate = createEvaluator(seccompProgram(architecture, 'code'))
  const ask = (name: string, ...values: number[]) =>
    evaluate({ number: numberOf(name, architecture)!, architecture: audit, values })

  test('every number of the table is that of libseccomp', () => {
    for (const [name, numbers] of Object.entries({ ...DENIED, ...ABSENT, ...EXAMINED })) {
      expect([name, numbers[column]]).toEqual([name, numberOf(name, architecture)])
    }
    expect(numberOf('set_mempolicy_home_node', architecture)).toBe(NEWEST)
  })

  test('the table has every call up to the newest one, once', () => {
    const listed = [...Object.keys(DENIED), ...Object.keys(ABSENT), ...Object.keys(EXAMINED), ...ALLOWED]
    expect(new Set(listed).size).toBe(listed.length)
    for (let number = 0; number <= NEWEST; number++) {
      const name = nameOf(number, architecture)
      if (name !== undefined) expect(listed).toContain(name)
    }
  })

  test('calls that the table denies fail with EPERM, absent ones with ENOSYS, all others are allowed', () => {
    const denied = new Set(Object.values(DENIED).map((numbers) => numbers[column]))
    const absent = new Set(Object.values(ABSENT).map((numbers) => numbers[column]))
    const examined = new Set(Object.values(EXAMINED).map((numbers) => numbers[column] as number))
    for (let number = 0; number <= NEWEST; number++) {
      if (examined.has(number)) continue
      expect([number, evaluate({ number, architecture: audit, values: [] })]).toEqual([
        number,
        denied.has(number) ? EPERM : absent.has(number) ? ENOSYS : ALLOW,
      ])
    }
  })

  test('newer calls, x32 calls, clone3 and asynchronous I/O are absent; a foreign architecture kills', () => {
    for (const number of [NEWEST + 1, 1000, 0x4000_0000, 0x4000_0000 + 165]) {
      expect(evaluate({ number, architecture: audit, values: [] })).toBe(ENOSYS)
    }
    expect([ask('clone3'), ask('io_setup', 64), ask('io_submit', 1, 1)]).toEqual([ENOSYS, ENOSYS, ENOSYS])
    expect(evaluate({ number: 0, architecture: 0x4000_0003, values: [] })).toBe(KILL)
  })

  test('namespaces are refused to clone and unshare, threads and forks are not', () => {
    for (const flag of [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]) {
      expect(ask('clone', flag | 17)).toBe(EPERM)
      expect(ask('unshare', flag)).toBe(EPERM)
    }
    expect(ask('unshare', 0x80)).toBe(EPERM)
    expect([ask('clone', 17), ask('clone', 0x003d_0f00), ask('unshare', 0x400)]).toEqual([ALLOW, ALLOW, ALLOW])
  })

  test('sockets are unix, TCP and UDP alone; netlink is absent', () => {
    const allowed = [...Array(64).keys()].filter((family) => ask('socket', family, 1, 0) === ALLOW)
    expect(allowed).toEqual([1, 2, 10])
    expect([ask('socket', 16, 3, 0), ask('socket', 40, 1, 0), ask('socketpair', 40, 1, 0)]).toEqual([
      ENOSYS,
      EAFNOSUPPORT,
      EAFNOSUPPORT,
    ])
    expect(ask('socketpair', 1, 1, 0)).toBe(ALLOW)
    const flags = 0x8_0800
    for (const family of [2, 10]) {
      const held = [0, 1, 6, 17, 58, 132, 262].map((protocol) =>
        [1, 2, 3, 5].filter((type) => ask('socket', family, type | flags, protocol) === ALLOW),
      )
      expect(held).toEqual([[1, 2], [], [1], [2], [], [], []])
      expect(ask('socket', family, 3, 1)).toBe(EPROTONOSUPPORT)
    }
  })

  test('no buffers beyond the machine’s limit, and no filters on sockets', () => {
    const refused = [...Array(80).keys()].filter((name) => ask('setsockopt', 3, 1, name) === EPERM)
    expect(refused).toEqual([26, 32, 33, 50, 51, 52])
    expect([ask('setsockopt', 3, 6, 26), ask('setsockopt', 3, 0, 33)]).toEqual([ALLOW, ALLOW])
  })

  test('the page cache can be neither queried nor emptied', () => {
    expect([ask('preadv2', 3, 0, 1, 0, 0, 8), ask('preadv2', 3, 0, 1, 0, 0, 9)]).toEqual([EOPNOTSUPP, EOPNOTSUPP])
    expect([ask('preadv2', 3, 0, 1, 0, 0, 1), ask('preadv2', 3)]).toEqual([ALLOW, ALLOW])
    expect([0, 1, 2, 3, 4, 5].map((advice) => ask('fadvise64', 3, 0, 0, advice))).toEqual([
      ...Array(4).fill(ALLOW),
      DONE,
      ALLOW,
    ])
  })

  test('no keystrokes into terminals, whatever the upper half of the request number', () => {
    expect([0x5412, 0x541c, 0x5423].map((request) => ask('ioctl', 0, request))).toEqual([EPERM, EPERM, EPERM])
    expect(ask('ioctl', 0, 0x5412 + 2 ** 32)).toBe(EPERM)
    expect(ask('ioctl', 0, 0x5401)).toBe(ALLOW)
  })
})

describe.each(['x64', 'arm64'] as const)('the profile of a browser on %s', (architecture) => {
  const { column, audit } = ARCHITECTURES[architecture]
  const [evaluate, strict] = (['browser', 'code'] as const).map((profile) =>
    createEvaluator(seccompProgram(architecture, profile)),
  ) as [Evaluate, Evaluate]
  const ask = (name: string, ...values: number[]) =>
    evaluate({ number: numberOf(name, architecture)!, architecture: audit, values })

  test('allows a user, pid and network namespace to clone, a user namespace to unshare, and no other', () => {
    const flags = [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]
    expect(flags.filter((flag) => ask('clone', flag | 17) === ALLOW)).toEqual([0x1000_0000, 0x2000_0000, 0x4000_0000])
    expect([...flags, 0x80].filter((flag) => ask('unshare', flag) === ALLOW)).toEqual([0x1000_0000])
    expect([ask('clone', 0x1002_0000), ask('unshare', 0x1002_0000)]).toEqual([EPERM, EPERM])
  })

  test('allows chroot, and otherwise only what the strict filter allows', () => {
    const examined = new Set(Object.values(EXAMINED).map((numbers) => numbers[column] as number))
    const differing = [...Array(NEWEST + 1).keys()].filter((number) => {
      const data = { number, architecture: audit, values: [] }
      return !examined.has(number) && evaluate(data) !== strict(data)
    })
    expect(differing).toEqual([numberOf('chroot', architecture)])
  })

  test('refuses calls that a capability in an own namespace would allow: routing and raw sockets, netfilter tables', () => {
    expect([ask('socket', 2, 3, 255), ask('socket', 16, 3, 0)]).toEqual([EPROTONOSUPPORT, ENOSYS])
    expect([...Array(64).keys()].filter((family) => ask('socket', family, 1, 0) === ALLOW)).toEqual([1, 2, 10])
    const options = [0, 41].flatMap((level) => [64, 65].map((name) => ask('setsockopt', 3, level, name)))
    expect(options).toEqual([EPERM, EPERM, EPERM, EPERM])
    expect(ask('setsockopt', 3, 1, 33)).toBe(EPERM)
    expect([ask('setsockopt', 3, 1, 64), ask('setsockopt', 3, 41, 26), ask('setsockopt', 3, 6, 65)]).toEqual([
      ALLOW,
      ALLOW,
      ALLOW,
    ])
  })
})

type Evaluate = ReturnType<typeof createEvaluator>

interface SeccompData {
  readonly number: number
  readonly architecture: number
  readonly values: readonly number[]
}

/** The kernel's interpreter, for the instructions that occur. */
function createEvaluator(program: Buffer): (data: SeccompData) => number {
  return ({ number, architecture, values }) => {
    const data = Buffer.alloc(64)
    data.writeUInt32LE(number, 0)
    data.writeUInt32LE(architecture, 4)
    for (const [index, value] of values.entries()) data.writeBigUInt64LE(BigInt(value), 16 + 8 * index)
    let loaded = 0
    for (let at = 0; ; at++) {
      const [code, jumpTrue, jumpFalse, value] = [
        program.readUInt16LE(at * 8),
        program[at * 8 + 2]!,
        program[at * 8 + 3]!,
        program.readUInt32LE(at * 8 + 4),
      ]
      if (code === 0x20) loaded = data.readUInt32LE(value)
      else if (code === 0x54) loaded = (loaded & value) >>> 0
      else if (code === 0x15) at += loaded === value ? jumpTrue : jumpFalse
      else if (code === 0x25) at += loaded > value ? jumpTrue : jumpFalse
      else if (code === 0x45) at += (loaded & value) !== 0 ? jumpTrue : jumpFalse
      else if (code === 0x06) return value
      else throw new Error(`Instruction ${code} at ${at}`)
    }
  }
}
