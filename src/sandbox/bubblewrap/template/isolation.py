"""What a forked child does to itself: it gives up every right of the template, and gets a root of its own."""

import fcntl
import os
import signal
import socket
import struct

from .kernel import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    LAST_CAPABILITY,
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    call,
    mount,
    prctl,
    write_to,
)

STAGE = '/run/errand/stage'
EMPTY_FILE, EMPTY_DIRECTORY = '/run/errand/empty', '/run/errand/nothing'  # of the root's base layer
INSIDE = 1000  # uid and gid in the sandbox
HOSTNAME = b'sandbox'
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        found = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack('16sh22x', b'lo', 0))
        flags = struct.unpack_from('16sh', found)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack('16sh22x', b'lo', flags | IFF_UP))


def read_only(path, flags):
    mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags)


def stage_root(plan, number):
    """Builds a root that shares no inode with another sandbox: overlays of the common root, and devices of its own."""
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
    """Pivots into the new root. The template's own mounts are removed, not only covered.

    Returns a descriptor of /proc/sys/user, which becomes read-only.
    """
    mount(None, '/', None, MS_PRIVATE | MS_REC)
    stage_root(plan, number)
    os.chdir(STAGE)
    call('pivot_root', b'.', b'.')
    call('umount2', b'.', MNT_DETACH)
    os.chdir('/')
    settings = os.open('/proc/sys/user', os.O_PATH | os.O_DIRECTORY)
    # A bind mount of /proc/sys shows each reader its own settings, and can be read-only.
    mount('/proc/sys', '/proc/sys', None, MS_BIND)
    read_only('/proc/sys', MS_NOSUID | MS_NODEV | MS_NOEXEC)
    masks = [(EMPTY_FILE, path) for path in (*plan['masked']['files'], '/proc/cmdline')]
    for source, target in masks + [(EMPTY_DIRECTORY, path) for path in plan['masked']['directories']]:
        mount(source, target, None, MS_BIND)  # part of the overlay, which is read-only
    for path, options in places:
        mount('tmpfs', path, 'tmpfs', MS_NOSUID | MS_NODEV, options)
    return settings


def become_user(uid):
    """Becomes a host uid that owns nothing, mapped to 1000 in a new user namespace."""
    call('setgroups', 0, None)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    prctl(PR_SET_DUMPABLE, 1)  # after a change of uid a process cannot open its own /proc files
    call('unshare', CLONE_NEWUSER)
    write_to('/proc/self/setgroups', 'deny')
    write_to('/proc/self/uid_map', '%d %d 1' % (INSIDE, uid))
    write_to('/proc/self/gid_map', '%d %d 1' % (INSIDE, uid))
    prctl(PR_SET_DUMPABLE, 0)


def drop_capabilities():
    for capability in range(LAST_CAPABILITY + 1):
        call('prctl', PR_CAPBSET_DROP, capability, 0, 0, 0)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack('@Ii', 0x20080522, 0)
    call('capset', header, bytes(24))


def isolate(request, given, number, wait):
    """Gives up all rights of the template for good. `wait` returns once the host has put the child into its cgroups."""
    call('unshare', CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET)
    loopback_up()
    call('sethostname', HOSTNAME, len(HOSTNAME))
    settings = replace_root(given['root'], number, request['places'])
    wait()
    call('unshare', CLONE_NEWCGROUP)
    become_user(request['uid'])
    if request['profile'] != 'browser':
        write_to('max_user_namespaces', '0', dir_fd=settings)
    # To the kernel all sandboxes are one user: without these limits one could use up the whole quota.
    for name, most in given['inotify'].items():
        write_to('max_inotify_' + name, str(most), dir_fd=settings)
    os.close(settings)
    drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir('/workspace')
    given['filters'][request['profile']].load()
