/**
 * Builds the seccomp filter of a sandbox from the table in ../syscalls.ts, as a classic BPF program.
 *
 * Denied: EPERM; odd socket families: EAFNOSUPPORT; odd protocols: EPROTONOSUPPORT; absent or newer than the table: ENOSYS.
 * A call of a foreign architecture kills the process; x32 calls have numbers above the table.
 */
import type { Profile } from '../port.ts'
import {
  ABSENT,
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  AF_UNIX,
  BROWSER,
  DENIED,
  EXAMINED,
  FADV_DONTNEED,
  INTERNET_SOCKETS,
  NEW_NAMESPACES,
  NEW_TIME,
  NEWEST,
  REFUSED_OPTIONS,
  REFUSED_REQUESTS,
  RWF_NOWAIT,
  SOCKET_TYPE,
} from '../syscalls.ts'

export const ARCHITECTURES = {
  x64: { column: 0, audit: 0xc000_003e },
  arm64: { column: 1, audit: 0xc000_00b7 },
} as const

export type Architecture = keyof typeof ARCHITECTURES

const EPERM = 1
const ENOSYS = 38
const EPROTONOSUPPORT = 93
const EOPNOTSUPP = 95
const EAFNOSUPPORT = 97

const ALLOW = 0x7fff_0000
const KILL_PROCESS = 0x8000_0000
const errno = (number: number) => 0x0005_0000 | number

type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number]

const load = (offset: number): Instruction => [0x20, 0, 0, offset]
const answer = (value: number): Instruction => [0x06, 0, 0, value]
/** The low half of an argument: flags, families and ioctl numbers are 32 bits wide to the kernel. */
const loadArgument = (index: number) => load(16 + 8 * index)
/** Keeps only these bits of the loaded value. */
const only = (bits: number): Instruction => [0x54, 0, 0, bits]
const loadNumber = load(0)
const loadArchitecture = load(4)

/** Runs `body` if the loaded value equals, has a bit of, or is above `value`; otherwise skips it. */
const whenEqual = (value: number, body: Instruction[]): Instruction[] => [[0x15, 0, body.length, value], ...body]
const whenAnyBit = (value: number, body: Instruction[]): Instruction[] => [[0x45, 0, body.length, value], ...body]
const whenAbove = (value: number, body: Instruction[]): Instruction[] => [[0x25, 0, body.length, value], ...body]

const allow = answer(ALLOW)
const refuse = answer(errno(EPERM))
const absent = answer(errno(ENOSYS))
const noFamily = answer(errno(EAFNOSUPPORT))

/** `makes`: the namespaces that are allowed, by clone and by unshare. */
function examine(profile: Profile): Record<keyof typeof EXAMINED, Instruction[]> {
  const makes = profile === 'browser' ? BROWSER : { clone: 0, unshare: 0 }
  return {
    clone: [loadArgument(0), ...whenAnyBit(NEW_NAMESPACES & ~makes.clone, [refuse]), allow],
    unshare: [loadArgument(0), ...whenAnyBit((NEW_NAMESPACES | NEW_TIME) & ~makes.unshare, [refuse]), allow],
    socket: [
      loadArgument(0),
      ...whenEqual(AF_UNIX, [allow]),
      ...[AF_INET, AF_INET6].flatMap((family) => whenEqual(family, examineInternet())),
      ...whenEqual(AF_NETLINK, [absent]),
      noFamily,
    ],
    socketpair: [loadArgument(0), ...whenEqual(AF_UNIX, [allow]), noFamily],
    setsockopt: examineOptions(profile),
    ioctl: [loadArgument(1), ...REFUSED_REQUESTS.flatMap((request) => whenEqual(request, [refuse])), allow],
    preadv2: [loadArgument(5), ...whenAnyBit(RWF_NOWAIT, [answer(errno(EOPNOTSUPP))]), allow],
    fadvise64: [loadArgument(3), ...whenEqual(FADV_DONTNEED, [answer(errno(0))]), allow],
  }
}

function examineInternet(): Instruction[] {
  const ofType = (type: number) => INTERNET_SOCKETS.filter(([of]) => of === type).map(([, protocol]) => protocol)
  const protocols = (type: number) => [
    loadArgument(2),
    ...ofType(type).flatMap((protocol) => whenEqual(protocol, [allow])),
    answer(errno(EPROTONOSUPPORT)),
  ]
  const types = [...new Set(INTERNET_SOCKETS.map(([type]) => type))]
  return [
    loadArgument(1),
    only(SOCKET_TYPE),
    ...types.flatMap((type) => whenEqual(type, protocols(type))),
    answer(errno(EPROTONOSUPPORT)),
  ]
}

function examineOptions(profile: Profile): Instruction[] {
  const refused = { ...REFUSED_OPTIONS, ...(profile === 'browser' ? BROWSER.refusedOptions : {}) }
  return [
    loadArgument(1),
    ...Object.entries(refused).flatMap(([level, names]) =>
      whenEqual(Number(level), [loadArgument(2), ...names.flatMap((name) => whenEqual(name, [refuse])), allow]),
    ),
    allow,
  ]
}

/** The program in the kernel's form: `struct sock_filter[]`, little-endian. */
export function seccompProgram(architecture: Architecture, profile: Profile): Buffer {
  const { column, audit } = ARCHITECTURES[architecture]
  const bodies = examine(profile)
  const allowed: readonly string[] = profile === 'browser' ? BROWSER.allowed : []
  const examined = Object.entries(EXAMINED).flatMap(([name, numbers]) =>
    whenEqual(numbers[column], bodies[name as keyof typeof EXAMINED]),
  )
  const answered = (table: typeof DENIED, instruction: Instruction) =>
    Object.entries(table)
      .filter(([name, numbers]) => !allowed.includes(name) && numbers[column] !== undefined)
      .flatMap(([, numbers]) => whenEqual(numbers[column]!, [instruction]))
  const program: Instruction[] = [
    loadArchitecture,
    [0x15, 1, 0, audit],
    answer(KILL_PROCESS),
    loadNumber,
    ...whenAbove(NEWEST, [answer(errno(ENOSYS))]),
    ...examined,
    ...answered(ABSENT, absent),
    ...answered(DENIED, refuse),
    answer(ALLOW),
  ]
  const bytes = Buffer.alloc(program.length * 8)
  program.forEach(([code, jumpTrue, jumpFalse, value], index) => {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(jumpTrue, index * 8 + 2)
    bytes.writeUInt8(jumpFalse, index * 8 + 3)
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4)
  })
  return bytes
}
