/**
 * The seccomp filter of a sandbox, as a classic BPF program, written without C.
 *
 * Denied with EPERM: what makes namespaces, mounts, keys, traces, kernel objects or clocks. Odd socket families:
 * EAFNOSUPPORT. What is newer than the table (and clone3, whose flags lie in memory where a filter cannot look): ENOSYS,
 * for which libc has older ways. Any other call is allowed. A call of a foreign architecture kills the process; x32 calls
 * have numbers above the table.
 */

/** Number on x86_64 and on aarch64; undefined where the architecture has no such call. */
type Numbers = readonly [number, number | undefined]

export const DENIED: Readonly<Record<string, Numbers>> = {
  acct: [163, 89],
  add_key: [248, 217],
  bpf: [321, 280],
  chroot: [161, 51],
  clock_adjtime: [305, 266],
  clock_settime: [227, 112],
  create_module: [174, undefined],
  delete_module: [176, 106],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  finit_module: [313, 273],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fsopen: [430, 430],
  fspick: [433, 433],
  get_kernel_syms: [177, undefined],
  get_mempolicy: [239, 236],
  init_module: [175, 105],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  io_uring_setup: [425, 425],
  ioperm: [173, undefined],
  iopl: [172, undefined],
  kcmp: [312, 272],
  kexec_file_load: [320, 294],
  kexec_load: [246, 104],
  keyctl: [250, 219],
  lookup_dcookie: [212, 18],
  mbind: [237, 235],
  memfd_secret: [447, 447],
  migrate_pages: [256, 238],
  modify_ldt: [154, undefined],
  mount: [165, 40],
  mount_setattr: [442, 442],
  move_mount: [429, 429],
  move_pages: [279, 239],
  name_to_handle_at: [303, 264],
  nfsservctl: [180, 42],
  open_by_handle_at: [304, 265],
  open_tree: [428, 428],
  perf_event_open: [298, 241],
  personality: [135, 92],
  pidfd_getfd: [438, 438],
  pivot_root: [155, 41],
  process_madvise: [440, 440],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  ptrace: [101, 117],
  query_module: [178, undefined],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  reboot: [169, 142],
  request_key: [249, 218],
  set_mempolicy: [238, 237],
  set_mempolicy_home_node: [450, 450],
  setdomainname: [171, 162],
  sethostname: [170, 161],
  setns: [308, 268],
  settimeofday: [164, 170],
  swapoff: [168, 225],
  swapon: [167, 224],
  _sysctl: [156, undefined],
  sysfs: [139, undefined],
  syslog: [103, 116],
  umount2: [166, 39],
  uselib: [134, undefined],
  userfaultfd: [323, 282],
  ustat: [136, undefined],
  vhangup: [153, 58],
  vmsplice: [278, 75],
}

/** Looked at more closely, or told to be absent. */
export const EXAMINED = {
  clone: [56, 220],
  clone3: [435, 435],
  unshare: [272, 97],
  socket: [41, 198],
  socketpair: [53, 199],
  ioctl: [16, 29],
} as const satisfies Record<string, Numbers>

/** The newest call of the table, the same number on both architectures: `set_mempolicy_home_node`, Linux 5.17. */
export const NEWEST = 450

export const ARCHITECTURES = {
  x64: { column: 0, audit: 0xc000_003e },
  arm64: { column: 1, audit: 0xc000_00b7 },
} as const

export type Architecture = keyof typeof ARCHITECTURES

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

const ALLOW = 0x7fff_0000
const KILL_PROCESS = 0x8000_0000
const errno = (number: number) => 0x0005_0000 | number

const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACES = 0x7e02_0000
/** CLONE_NEWTIME: only unshare takes it; in clone the bit belongs to the signal. */
const NEW_TIME = 0x80

const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
const TIOCSETD = 0x5423

type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number]

const load = (offset: number): Instruction => [0x20, 0, 0, offset]
const answer = (value: number): Instruction => [0x06, 0, 0, value]
/** The low half of an argument: flags, families and ioctl numbers are 32 bits wide to the kernel. */
const loadArgument = (index: number) => load(16 + 8 * index)
const loadNumber = load(0)
const loadArchitecture = load(4)

/** `body` where the loaded value is, has a bit of, or is above `value`; else on to what follows. */
const whenEqual = (value: number, body: Instruction[]): Instruction[] => [[0x15, 0, body.length, value], ...body]
const whenAnyBit = (value: number, body: Instruction[]): Instruction[] => [[0x45, 0, body.length, value], ...body]
const whenAbove = (value: number, body: Instruction[]): Instruction[] => [[0x25, 0, body.length, value], ...body]

function examine(): Record<keyof typeof EXAMINED, Instruction[]> {
  const allow = answer(ALLOW)
  const refuse = answer(errno(EPERM))
  const noFamily = answer(errno(EAFNOSUPPORT))
  const routeOnly = [loadArgument(2), ...whenEqual(0, [allow]), noFamily]
  return {
    clone: [loadArgument(0), ...whenAnyBit(NEW_NAMESPACES, [refuse]), allow],
    clone3: [answer(errno(ENOSYS))],
    unshare: [loadArgument(0), ...whenAnyBit(NEW_NAMESPACES | NEW_TIME, [refuse]), allow],
    socket: [
      loadArgument(0),
      ...[AF_UNIX, AF_INET, AF_INET6].flatMap((family) => whenEqual(family, [allow])),
      ...whenEqual(AF_NETLINK, routeOnly),
      noFamily,
    ],
    socketpair: [loadArgument(0), ...whenEqual(AF_UNIX, [allow]), noFamily],
    ioctl: [
      loadArgument(1),
      ...[TIOCSTI, TIOCLINUX, TIOCSETD].flatMap((request) => whenEqual(request, [refuse])),
      allow,
    ],
  }
}

/** The program as the kernel takes it: `struct sock_filter[]`, little-endian. */
export function seccompProgram(architecture: Architecture): Buffer {
  const { column, audit } = ARCHITECTURES[architecture]
  const bodies = examine()
  const examined = Object.entries(EXAMINED).flatMap(([name, numbers]) =>
    whenEqual(numbers[column], bodies[name as keyof typeof EXAMINED]),
  )
  const denied = Object.values(DENIED)
    .map((numbers) => numbers[column])
    .filter((number) => number !== undefined)
    .flatMap((number) => whenEqual(number, [answer(errno(EPERM))]))
  const program: Instruction[] = [
    loadArchitecture,
    [0x15, 1, 0, audit],
    answer(KILL_PROCESS),
    loadNumber,
    ...whenAbove(NEWEST, [answer(errno(ENOSYS))]),
    ...examined,
    ...denied,
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
