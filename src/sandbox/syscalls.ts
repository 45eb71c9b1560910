/**
 * System calls that code in a sandbox may make: one table for the filters of all drivers, by number (bubblewrap) and by
 * name (Docker).
 *
 * DENIED calls fail with EPERM: those that make namespaces, mounts, keys, traces, kernel objects or clocks, and those that
 * work on the whole machine. ABSENT calls, and calls newer than the table, fail with ENOSYS, for which programs have a
 * fallback. EXAMINED calls depend on their arguments. Any other call is allowed.
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
  sync: [162, 81], // writes every file system of the machine to disk
  syncfs: [306, 267],
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

/**
 * Asynchronous I/O takes its contexts from one number for the whole machine (fs.aio-max-nr). clone3 has its flags in
 * memory, which a filter cannot read.
 */
export const ABSENT: Readonly<Record<string, Numbers>> = {
  clone3: [435, 435],
  io_cancel: [210, 3],
  io_destroy: [207, 1],
  io_getevents: [208, 4],
  io_pgetevents: [333, 292],
  io_setup: [206, 0],
  io_submit: [209, 2],
}

export const EXAMINED = {
  clone: [56, 220],
  unshare: [272, 97],
  socket: [41, 198],
  socketpair: [53, 199],
  setsockopt: [54, 208],
  ioctl: [16, 29],
  preadv2: [327, 286],
  fadvise64: [221, 223],
} as const satisfies Record<string, Numbers>

/** The newest call of the table, the same number on both architectures: `set_mempolicy_home_node`, Linux 5.17. */
export const NEWEST = 450

/** Every other call up to the newest one of the table, for filters that are written by name. */
export const ALLOWED: readonly string[] = `
  accept accept4 access adjtimex afs_syscall alarm arch_prctl bind brk capget capset chdir chmod chown clock_getres
  clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
  epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve
  execveat exit exit_group faccessat faccessat2 fallocate fchdir fchmod fchmodat fchown fchownat fcntl
  fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_waitv
  futimesat get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups
  getitimer getpeername getpgid getpgrp getpid getpmsg getppid getpriority getrandom getresgid getresuid getrlimit
  getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init
  inotify_init1 inotify_rm_watch ioprio_get
  ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen
  listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise membarrier memfd_create mincore mkdir mkdirat mknod
  mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink
  mremap msgctl msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause
  pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv   prlimit64 process_mrelease pselect6 putpmsg pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv
  recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq
  rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
  rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
  sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler
  sched_yield seccomp security select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list
  set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid
  setresuid setreuid setrlimit setsid setuid setxattr shmat shmctl shmdt shmget shutdown sigaltstack
  signalfd signalfd4 splice stat statfs statx symlink symlinkat sync_file_range sysinfo tee tgkill time
  timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
  timerfd_settime times tkill truncate tuxcall umask uname unlink unlinkat utime utimensat utimes vfork vserver wait4
  waitid write writev`
  .trim()
  .split(/\s+/)

export const AF_UNIX = 1
export const AF_INET = 2
export const AF_INET6 = 10
/**
 * ENOSYS, which Node's os.networkInterfaces() takes for "none": no control group counts what its sockets hold, up to
 * 9 MB each where rmem_max is 4 MiB.
 */
export const AF_NETLINK = 16

/** The low bits of a socket's type; the others are SOCK_NONBLOCK and SOCK_CLOEXEC. */
export const SOCKET_TYPE = 0xf
/** Type and protocol of internet sockets: TCP and UDP, whose memory control groups count. */
export const INTERNET_SOCKETS: readonly (readonly [type: number, protocol: number])[] = [
  [1, 0],
  [1, 6],
  [2, 0],
  [2, 17],
]

/**
 * Socket options that are refused, by level: SO_SNDBUFFORCE and SO_RCVBUFFORCE (buffers beyond the machine's limit), and
 * filters (SO_ATTACH_FILTER, _BPF, _REUSEPORT_CBPF, _REUSEPORT_EBPF), which take from the machine's bpf_jit_limit.
 */
export const REFUSED_OPTIONS: Readonly<Record<number, readonly number[]>> = { 1: [26, 32, 33, 50, 51, 52] }

/** RWF_NOWAIT of preadv2 shows whether a page of a shared file is in memory, and so whether another sandbox has used it. */
export const RWF_NOWAIT = 8
/** POSIX_FADV_DONTNEED would evict a shared file from memory for all sandboxes. The call succeeds and does nothing. */
export const FADV_DONTNEED = 4

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
export const NEW_NAMESPACES = 0x7e02_0000
/** CLONE_NEWTIME: only unshare takes it; in clone the bit belongs to the signal. */
export const NEW_TIME = 0x80

/** Requests that ioctl refuses: TIOCSTI and TIOCLINUX (keystrokes into a terminal), TIOCSETD (line disciplines). */
export const REFUSED_REQUESTS: readonly number[] = [0x5412, 0x541c, 0x5423]

/**
 * Calls that Chromium needs for its own sandbox, in the profile `browser` only: a user, pid and network namespace by clone, a
 * user namespace by unshare, and chroot. The process that makes a user namespace has every capability in it. So the kernel
 * interfaces that such a capability would open are closed: no routing socket (traffic control), no netfilter tables.
 */
export const BROWSER = {
  clone: 0x7000_0000,
  unshare: 0x1000_0000,
  allowed: ['chroot'],
  /** Refused in addition to REFUSED_OPTIONS: IPT_SO_SET_REPLACE and IPT_SO_SET_ADD_COUNTERS on IPPROTO_IP and IPPROTO_IPV6. */
  refusedOptions: { 0: [64, 65], 41: [64, 65] } as Readonly<Record<number, readonly number[]>>,
} as const
