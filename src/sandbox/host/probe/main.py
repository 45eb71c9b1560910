"""The attacks of the self-test, run as a step inside a real sandbox.

self-probe.ts defines `TARGETS` before it: JSON of {port, abstract, secrets, files, terminals, counters, neighbour: {name, port,
key, locked}}, which are canaries of the host and of a second sandbox. Prints one JSON object: {"attacks": [{name, refused,
detail}], "inside": what code finds in the sandbox, "browser": a path or null}.
"""

import ctypes
import errno
import fcntl
import json
import os
import pty
import resource
import socket
import stat

from .attempts import attacks, attempt, connect, held_open, in_child, libc, none_of, refused, send, syscall
from .files import (
    OWN_PLACES,
    OWN_SETTINGS,
    counters_of_the_machine,
    devices,
    host_processes,
    kernel_settings,
    leaked_descriptors,
    locked_by_the_neighbour,
    mounts_without_end,
    page_in_memory,
    read_from,
    seen,
    seen_in,
    something_in,
    terminals_without_end,
    writable_mounts,
    write_to,
)
from .inside import describe_inside, find_browser


def type_into_terminal():
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, 0x5412, b'x')
    finally:
        os.close(master)
        os.close(slave)
    return 'typed'


def raise_limit():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most + 1))
    except ValueError as error:
        raise OSError(errno.EPERM, str(error))
    return 'raised'


def interfaces():
    with open('/proc/net/dev') as file:
        names = [line.split(':')[0].strip() for line in file if ':' in line]
    return [name for name in names if name != 'lo']


def attack_with_system_calls():
    buffer = ctypes.create_string_buffer(256)
    in_child('mount', 165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)
    in_child('mount, the new way (fsopen)', 430, 430, b'tmpfs', 0)
    in_child('mount, the new way (open_tree)', 428, 428, -100, b'/tmp', 1)
    in_child('umount', 166, 39, b'/tmp', 2)
    in_child('pivot_root', 155, 41, b'/tmp', b'/tmp')
    for kind, flag in (('user', 0x10000000), ('mount', 0x20000), ('network', 0x40000000), ('process', 0x20000000)):
        in_child('a new %s namespace (unshare)' % kind, 272, 97, flag)
        in_child('a new %s namespace (clone)' % kind, 56, 220, flag | 17, 0, 0, 0, 0)
    in_child('a new user namespace (clone3)', 435, 435, buffer, 64)
    in_child('setns', 308, 268, 0, 0)
    in_child('chroot', 161, 51, b'/tmp')
    in_child('ptrace', 101, 117, 0, 0, 0, 0)
    in_child('ptrace of the parent (attach)', 101, 117, 16, os.getpid(), 0, 0)
    syscall('bpf', 321, 280, 0, buffer, 64)
    syscall('perf_event_open', 298, 241, buffer, 0, -1, -1, 0)
    syscall('keyctl', 250, 219, 0, -3, 1)
    syscall('add_key', 248, 217, b'user', b'errand', b'x', 1, -3)
    syscall('request_key', 249, 218, b'user', b'errand', None, -3)
    syscall('io_uring_setup', 425, 425, 4, buffer)
    syscall('asynchronous I/O (io_setup)', 206, 0, 1, buffer)
    syscall('userfaultfd', 323, 282, 1)
    syscall('process_vm_readv', 310, 270, 1, 0, 0, 0, 0, 0)
    syscall('open_by_handle_at', 304, 265, -100, buffer, 0)
    syscall('init_module', 175, 105, buffer, 0, b'')
    syscall('kexec_load', 246, 104, 0, 0, 0, 0)
    in_child('sethostname', 170, 161, b'errand', 6)
    in_child('settimeofday', 164, 170, None, None)
    attempt('setuid', lambda: os.setuid(0))
    attempt('setgid', lambda: os.setgid(0))
    attempt('setgroups', lambda: os.setgroups([0]))
    attempt('a higher priority', lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
    attempt('a higher limit', raise_limit)
    attempt('keystrokes into a terminal (TIOCSTI)', type_into_terminal)
    attempt('making a device', lambda: os.mknod('/tmp/errand-probe', 0o666 | stat.S_IFCHR, os.makedev(1, 1)))
    attempt('devices of the host', lambda: none_of(devices()))


def attack_the_network(targets):
    attempt('a vsock socket', lambda: socket.socket(40, socket.SOCK_STREAM).close())
    attempt('a packet socket', lambda: socket.socket(17, socket.SOCK_RAW).close())
    attempt('a netlink socket', lambda: socket.socket(16, socket.SOCK_RAW, 0).close())
    attempt('a raw socket', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
    attempt("the host's loopback", lambda: connect(socket.AF_INET, ('127.0.0.1', targets['port'])))
    attempt("the host's abstract sockets", lambda: connect(socket.AF_UNIX, '\0' + targets['abstract']))
    attempt('a route to anywhere', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9)))
    attempt('a route to anywhere (IPv6)', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('2001:db8::1', 9)))
    attempt('the metadata address', lambda: connect(socket.AF_INET, ('169.254.169.254', 80)))
    attempt('DNS', lambda: socket.getaddrinfo('errand-probe.invalid', 80))
    attempt('DNS by datagram', lambda: send(socket.AF_INET, socket.SOCK_DGRAM, 0, ('192.0.2.53', 53)))
    attempt('ping', lambda: send(socket.AF_INET, socket.SOCK_DGRAM, 1, ('192.0.2.1', 0)))
    attempt('network interfaces', lambda: none_of(interfaces()))


def attack_the_host_by_files(targets):
    attempt("the runner's memory", lambda: read_from('/proc/1/mem'))
    attempt("the runner's file descriptors", lambda: os.listdir('/proc/1/fd'))
    attempt("the runner's environment", lambda: something_in('/proc/1/environ'))
    attempt("the host's processes", lambda: none_of(host_processes()))
    attempt("the host's kernel memory", lambda: something_in('/proc/kcore'))
    attempt("the host's kernel log", lambda: something_in('/proc/kmsg'))
    attempt("the host's command line", lambda: something_in('/proc/cmdline'))
    attempt('sysrq', lambda: os.close(os.open('/proc/sysrq-trigger', os.O_WRONLY)))
    attempt('escaping the memory killer', lambda: write_to('/proc/self/oom_score_adj', '-1000'))
    attempt('other users (uid_map)', lambda: write_to('/proc/self/uid_map', '0 0 1'))
    written = list(kernel_settings())
    attempt('writing to /proc/sys', lambda: none_of(path for path in written if not OWN_SETTINGS.match(path)))
    attempt('writing to the settings of its own namespaces', lambda: none_of(filter(OWN_SETTINGS.match, written)))
    attempt('/sys', lambda: seen_in('/sys'))
    attempt('writing to /usr', lambda: write_to('/usr/errand-probe'))
    attempt('writing to /', lambda: write_to('/errand-probe'))
    attempt('writing to /etc', lambda: write_to('/etc/errand-probe'))
    attempt('writing to /dev', lambda: write_to('/dev/errand-probe'))
    attempt('writing to the host', lambda: none_of(writable_mounts()))
    attempt('a hard link to a file of the host', lambda: os.link('/usr/bin/python3', '/workspace/errand-probe'))
    attempt('a hard link to the runner', lambda: os.link('/errand/runner.py', '/tmp/errand-probe'))
    attempt('terminals without end', lambda: terminals_without_end(targets['terminals']))
    attempt('counters of the whole machine', lambda: none_of(counters_of_the_machine(targets['counters'])))
    attempt('whether a file of the root is in memory', page_in_memory)
    attempt('files without end', lambda: none_of(mounts_without_end(targets['files'])))
    for path in targets['secrets']:
        attempt('seeing %s of the host' % path, lambda: seen(path))


def attack_the_neighbour(neighbour):
    attempt("another sandbox's loopback", lambda: connect(socket.AF_INET, ('127.0.0.1', neighbour['port'])))
    attempt("another sandbox's abstract sockets", lambda: connect(socket.AF_UNIX, '\0' + neighbour['name']))
    attempt("another sandbox's shared memory", lambda: None if libc.shmget(neighbour['key'], 0, 0) >= 0 else none_of([]))
    attempt("another sandbox's locks on files of the root", lambda: none_of(locked_by_the_neighbour(neighbour['locked']['files'])))
    attempt("another sandbox's locks on devices", lambda: none_of(locked_by_the_neighbour(neighbour['locked']['devices'])))
    for place in OWN_PLACES[:3]:
        attempt("another sandbox's %s" % place, lambda: seen(place + '/' + neighbour['name']))


def check_status():
    """What the kernel says of this process's rights."""
    with open('/proc/self/status') as file:
        status = dict(line.rstrip('\n').split(':\t', 1) for line in file if ':\t' in line)
    for name, wanted in (('CapEff', 0), ('CapPrm', 0), ('CapBnd', 0), ('CapAmb', 0)):
        value = status.get(name, '0')  # gVisor has fewer
        (refused if int(value, 16) == wanted else held_open)('capabilities (%s)' % name, value)
    for attack, name, wanted in (('new privileges', 'NoNewPrivs', '1'), ('calls past seccomp', 'Seccomp', '2')):
        value = status.get(name, 'unknown').strip()
        (refused if value == wanted else held_open)(attack, '%s %s' % (name, value))
    (refused if os.getuid() != 0 else held_open)('being root', os.getuid())


def main(targets):
    attempt('descriptors that were left open', lambda: none_of(leaked_descriptors()))
    attack_with_system_calls()
    attack_the_network(targets)
    attack_the_host_by_files(targets)
    attack_the_neighbour(targets['neighbour'])
    check_status()
    print(json.dumps({'attacks': attacks, 'inside': describe_inside(), 'browser': find_browser()}))


main(json.loads(TARGETS))  # noqa: F821
