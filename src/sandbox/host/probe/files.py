"""Attacks on files: what can be seen, read or written that belongs to the host or to another sandbox."""

import errno
import fcntl
import os
import re
import stat

OWN_PLACES = ('/workspace', '/tmp', '/dev/shm', '/run/errand')
# null zero full random urandom tty console ptmx
HARMLESS = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2)}
# Settings that a namespace has for itself: net, ipc, pid, user.
OWN_SETTINGS = re.compile('/proc/sys/(net/|user/|fs/mqueue/|kernel/(auto_msgmni|msg|sem|shm|pid_max|ns_last_pid))')


def write_to(path, text='x'):
    with open(path, 'w') as file:
        file.write(text)
    return 'written'


def seen(path):
    os.stat(path)
    return 'seen'


def seen_in(path):
    names = os.listdir(path)
    if not names:
        raise OSError(errno.ENOENT, 'empty')
    return names


def something_in(path):
    with open(path, 'rb') as file:
        if not file.read(64):
            raise OSError(errno.ENODATA, 'empty')
    return 'read'


def read_from(path):
    with open(path, 'rb') as file:
        return '%d bytes read' % len(file.read(64))


def leaked_descriptors():
    """Descriptors that the host, bubblewrap or runc left open (CVE-2024-21626). Only the runner's pipes should be there."""
    for name in os.listdir('/proc/self/fd'):
        try:
            place = os.readlink('/proc/self/fd/' + name)
        except FileNotFoundError:
            continue  # the descriptor of the listing itself
        if not place.startswith(('pipe:', 'anon_inode:', '/dev/null', '/dev/urandom', '/proc/') + OWN_PLACES):
            yield '%s → %s' % (name, place)
    if not os.getcwd().startswith('/workspace'):
        yield 'the working directory, %s' % os.getcwd()


def writable_mounts():
    """Mounts of the host that can be written to (CVE-2026-25725), by any name."""
    with open('/proc/self/mountinfo') as file:
        mounts = [line.split(' ') for line in file]
    for fields in mounts:
        place, options = fields[4].encode().decode('unicode_escape'), fields[5].split(',')
        if 'ro' in options or place in OWN_PLACES or place == '/dev/pts':
            continue
        try:
            kind = os.stat(place).st_mode
            if stat.S_ISDIR(kind):
                trial = place.rstrip('/') + '/errand-probe'
                os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                os.unlink(trial)
            elif stat.S_ISREG(kind):
                os.close(os.open(place, os.O_WRONLY))
            else:
                continue  # a device: see devices()
            yield place
        except OSError:
            pass


def devices():
    for folder, _, names in os.walk('/dev'):
        for name in names:
            path = os.path.join(folder, name)
            try:
                found = os.lstat(path)
                number = os.major(found.st_rdev), os.minor(found.st_rdev)
                device = stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode)
                if device and number not in HARMLESS and not 136 <= number[0] <= 143:
                    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                    yield path
            except OSError:
                pass


def kernel_settings():
    """Settings below /proc/sys that can be written. Each is written the value that it has."""
    for folder, _, names in os.walk('/proc/sys'):
        for name in names:
            try:
                if not stat.S_ISREG(os.stat(os.path.join(folder, name)).st_mode):
                    continue  # hidden by a device
                with open(os.path.join(folder, name), 'r+b', buffering=0) as file:
                    held = file.read(4096)
                    file.seek(0)
                    file.write(held)
                yield os.path.join(folder, name)
            except OSError:
                pass


def mounts_without_end(most):
    for place in OWN_PLACES:
        try:
            room = os.statvfs(place)
        except OSError:
            continue
        if not 0 < room.f_files <= most:
            yield '%s: %d' % (place, room.f_files)


def host_processes():
    """PID 1 must be the runner or the program that started it."""
    with open('/proc/1/cmdline', 'rb') as file:
        if b'runner.py' not in file.read():
            yield '1'


def terminals_without_end(most):
    held = []
    try:
        while len(held) <= most:
            held.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))
        return len(held)
    finally:
        for fd in held:
            os.close(fd)


def counters_of_the_machine(paths):
    for path in paths:
        try:
            something_in(path)
            yield path
        except OSError:
            pass


def page_in_memory():
    fd = os.open('/usr/bin/python3', os.O_RDONLY) if os.path.exists('/usr/bin/python3') else os.open('/proc/self/exe', os.O_RDONLY)
    try:
        return os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    finally:
        os.close(fd)


def locked_by_the_neighbour(paths):
    """Paths on which the lock of the neighbor is seen: both sandboxes have the same inode there."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield path
        except OSError:
            pass  # it takes no locks
        finally:
            os.close(fd)
