"""The template: a process inside an outer bubblewrap that has the runner loaded, and forks into one sandbox a request.

Started as `python3 -I -S template.py runner.py [MODULE…]`, PID 1 of the outer sandbox and root of its user namespace
alone: on the host it is a user that owns nothing. Of the modules it imports beforehand what the root has. It reads one
JSON line a request on stdin ({id, nonce, uid, profile, places, rlimits, cpus}) and says {id, pid} or {id, error} on
stdout; no word of a caller ever comes to it. A line before the first brings the seccomp programs and what a root is made of.

A child gives up all it had, the nonce and its own connection to the host apart: new namespaces, new places to write to, a
uid of its own inside a user namespace of its own, no capability, the seccomp filter. What was done to it is never undone,
for it is used once. The template stays with one thread and without a descriptor that a child could keep.
"""

import base64
import ctypes
import fcntl
import gc
import importlib.machinery
import importlib.util
import json
import math
import os
import resource
import signal
import socket
import struct
import sys
import time

DOOR = '/run/errand/door/socket'
STAGE = '/run/errand/stage'
EMPTY_FILE, EMPTY_DIRECTORY = '/run/errand/empty', '/run/errand/nothing'  # of the root's base layer
INSIDE = 1000  # uid and gid in the sandbox
HOSTNAME = b'sandbox'

libc = ctypes.CDLL(None, use_errno=True)
# Told once, a call costs half: each child drops forty capabilities, one by one.
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC = 1, 2, 4, 8, 32, 4096, 8192, 16384
MS_PRIVATE, MNT_DETACH = 1 << 18, 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def call(name, *arguments):
    if getattr(libc, name)(*arguments) == -1:
        code = ctypes.get_errno()
        raise OSError(code, '%s: %s' % (name, os.strerror(code)))


def prctl(option, *values):
    call('prctl', option, *(*values, 0, 0, 0, 0)[:4])


def mount(source, target, kind, flags, options=None):
    encoded = (part and part.encode() for part in (source, target, kind))
    call('mount', *encoded, flags, options and options.encode())


def write_to(path, text, dir_fd=None):
    fd = os.open(path, os.O_WRONLY, dir_fd=dir_fd)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


class Filter:
    """A seccomp program as the kernel takes it."""

    def __init__(self, encoded):
        program = base64.b64decode(encoded)
        self.program = ctypes.create_string_buffer(program, len(program))
        self.header = ctypes.create_string_buffer(
            struct.pack('@HxxxxxxQ', len(program) // 8, ctypes.addressof(self.program)), 16
        )

    def load(self):
        prctl(PR_SET_SECCOMP, 2, ctypes.addressof(self.header))


# ---------------------------------------------------------------- what the child does to itself


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        found = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack('16sh22x', b'lo', 0))
        flags = struct.unpack_from('16sh', found)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack('16sh22x', b'lo', flags | IFF_UP))


def read_only(path, flags):
    mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags)


def stage_root(plan, number):
    """A root whose inodes no other cell has: overlays of what all are shown, and devices of its own."""
    overlay = MS_RDONLY | MS_NOSUID | MS_NODEV
    mount('overlay', STAGE, 'overlay', overlay, 'lowerdir=' + plan['lower'])
    for lower, target in plan['directories']:
        mount('overlay', STAGE + target, 'overlay', overlay, 'lowerdir=' + lower)
    mount('%s/%x/%x' % (plan['devices'], *divmod(number, 16)), STAGE + '/dev', None, MS_BIND)
    read_only(STAGE + '/dev', MS_NOSUID | MS_NOEXEC)
    terminals = 'newinstance,ptmxmode=0666,mode=620,max=%d' % plan['terminals']
    mount('devpts', STAGE + '/dev/pts', 'devpts', MS_NOSUID | MS_NOEXEC, terminals)
    mount('proc', STAGE + '/proc', 'proc', MS_NOSUID | MS_NODEV | MS_NOEXEC)


def replace_root(plan, number, places):
    """All that is the template's own is not covered but taken away."""
    mount(None, '/', None, MS_PRIVATE | MS_REC)
    stage_root(plan, number)
    os.chdir(STAGE)
    call('pivot_root', b'.', b'.')
    call('umount2', b'.', MNT_DETACH)
    os.chdir('/')
    settings = os.open('/proc/sys/user', os.O_PATH | os.O_DIRECTORY)
    # A bound /proc/sys shows each reader what is its own, and can be made read-only.
    mount('/proc/sys', '/proc/sys', None, MS_BIND)
    read_only('/proc/sys', MS_NOSUID | MS_NODEV | MS_NOEXEC)
    masks = [(EMPTY_FILE, path) for path in (*plan['masked']['files'], '/proc/cmdline')]
    for source, target in masks + [(EMPTY_DIRECTORY, path) for path in plan['masked']['directories']]:
        mount(source, target, None, MS_BIND)  # of the overlay, which is read-only
    for path, options in places:
        mount('tmpfs', path, 'tmpfs', MS_NOSUID | MS_NODEV, options)
    return settings


def become_user(uid, settings):
    """A uid of the host's that owns nothing, seen as 1000, in a user namespace below which none can be made."""
    call('setgroups', 0, None)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    prctl(PR_SET_DUMPABLE, 1)  # a change of the uid takes away one's own /proc files
    call('unshare', CLONE_NEWUSER)
    write_to('/proc/self/setgroups', 'deny')
    write_to('/proc/self/uid_map', '%d %d 1' % (INSIDE, uid))
    write_to('/proc/self/gid_map', '%d %d 1' % (INSIDE, uid))
    prctl(PR_SET_DUMPABLE, 0)


def give_up_capabilities():
    for capability in range(LAST_CAPABILITY + 1):
        call('prctl', PR_CAPBSET_DROP, capability, 0, 0, 0)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack('@Ii', 0x20080522, 0)
    call('capset', header, bytes(24))


def enclose(request, given, number, wait):
    """After this nothing of the template's rights is left, and no way back."""
    call('unshare', CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET)
    loopback_up()
    call('sethostname', HOSTNAME, len(HOSTNAME))
    settings = replace_root(given['root'], number, request['places'])
    wait()
    call('unshare', CLONE_NEWCGROUP)
    become_user(request['uid'], settings)
    if request['profile'] != 'browser':
        write_to('max_user_namespaces', '0', dir_fd=settings)
    # All cells count as one user's: without these one could have all that there is for them.
    for name, most in given['inotify'].items():
        write_to('max_inotify_' + name, str(most), dir_fd=settings)
    os.close(settings)
    give_up_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir('/workspace')
    given['filters'][request['profile']].load()


def become_sandbox(request, given, number):
    """In the forked child, PID 1 of its namespace. Never returns."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.connect(DOOR)
    wire = door.detach()
    for fd in (0, 1):
        os.dup2(wire, fd)
    os.dup2(os.open('/dev/null', os.O_RDWR), 2)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.write(1, request['nonce'].encode() + b'\n')

    def wait():
        if os.read(0, 3) != b'go\n':  # the host has put it into its control groups
            os._exit(0)

    try:
        enclose(request, given, number, wait)
    except OSError as error:
        os.write(1, b'failed %s\n' % str(error).encode())
        os._exit(1)
    os.write(1, b'ok\n')
    gc.enable()
    runner['main']({'rlimits': request['rlimits'], 'refresh': lambda: imported and refresh(request['cpus'])})


# ---------------------------------------------------------------- the template itself


def load_runner(path):
    with open(path, encoding='utf-8') as file:
        source = file.read()
    found = {'__name__': 'runner', '__file__': path}
    exec(compile(source, path, 'exec'), found)
    found['preload']()
    found['load_site']()
    return found


# Builds of OpenBLAS have names of their own for it.
SET_THREADS = [before + 'openblas_set_num_threads' + after for before in ('', 'scipy_') for after in ('', '64_')]
ONE_THREAD = ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'NUMEXPR_NUM_THREADS')
THREADS_END_WITHIN = 5  # seconds


def import_modules(names):
    """The names that it made known. In a /tmp that goes again, and in an environment in which libraries start no threads,
    which a fork would lose."""
    found = [name for name in names if is_whole(importlib.util.find_spec(name.partition('.')[0]))]
    if not found:
        sys.exit('its root has none of %s' % ', '.join(names))
    before = set(sys.modules)
    mount('tmpfs', '/tmp', 'tmpfs', MS_NOSUID | MS_NODEV)
    os.environ.update(dict.fromkeys(ONE_THREAD, '1'))
    for name in found:
        importlib.import_module(name)
    for name in ONE_THREAD:
        del os.environ[name]
    call('umount2', b'/tmp', 0)
    until = time.monotonic() + THREADS_END_WITHIN
    while threads() > 1 and time.monotonic() < until:
        time.sleep(0.01)
    return {name.partition('.')[0] for name in set(sys.modules) - before} - before


def is_whole(spec):
    """And not a mere directory of that name."""
    return spec is not None and spec.origin is not None


def set_blas_threads():
    """What tells the library that numpy computes with how many threads to take; None where it is not OpenBLAS."""
    with open('/proc/self/maps') as maps:
        paths = {line.split()[-1] for line in maps if 'openblas' in line}
    found = [getattr(ctypes.CDLL(path), name, None) for path in sorted(paths) for name in SET_THREADS]
    return next(filter(None, found), None)


def refresh(cpus):
    """In each Python session: what the imports left that would be the same in all, or was made in the template alone, and
    what files of the code's own would have stood before."""
    if 'numpy.random' in sys.modules:
        sys.modules['numpy.random'].seed()
    if blas_threads and cpus > 1:
        blas_threads(min(math.ceil(cpus), len(os.sched_getaffinity(0))))
    for name in {path.partition('.')[0] for path in os.listdir()} & imported:
        spec = importlib.machinery.PathFinder.find_spec(name, [os.getcwd()])
        if is_whole(spec):
            for known in [known for known in sys.modules if known.partition('.')[0] == name]:
                del sys.modules[known]
    if 'matplotlib' in sys.modules:
        os.makedirs(sys.modules['matplotlib'].get_cachedir(), exist_ok=True)


def threads():
    return len(os.listdir('/proc/self/task'))


def writable_shares():
    """Memory that children would have in common with each other."""
    with open('/proc/self/maps') as maps:
        return sum(line.split()[1].endswith('s') and line.split()[1][1] == 'w' for line in maps)


def fork(request, given, number, own_pids):
    # Only the next child is to go into a new pid namespace; the one after it needs another.
    call('setns', own_pids, CLONE_NEWPID)
    call('unshare', CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        try:
            become_sandbox(request, given, number)
        finally:
            os._exit(1)
    return pid


def main():
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel takes what is dead
    requests = sys.stdin.buffer
    given = json.loads(requests.readline())
    given['filters'] = {profile: Filter(program) for profile, program in given['filters'].items()}
    gc.disable()
    gc.freeze()  # what is there stays where it is, on pages that are shared
    own_pids = os.open('/proc/self/ns/pid', os.O_RDONLY)
    os.write(1, b'{"ready": true, "threads": %d, "shares": %d}\n' % (threads(), writable_shares()))
    for number, line in enumerate(requests):
        request = json.loads(line)
        try:
            answer = {'pid': fork(request, given, number, own_pids)}
        except OSError as error:
            answer = {'error': str(error)}
        os.write(1, json.dumps({'id': request['id'], **answer}).encode() + b'\n')


with open('/proc/sys/kernel/cap_last_cap') as file:
    LAST_CAPABILITY = int(file.read())
runner = load_runner(sys.argv[1])
imported = import_modules(sys.argv[2:]) if sys.argv[2:] else set()
blas_threads = set_blas_threads()
main()
