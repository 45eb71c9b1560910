"""What a forked child does before it becomes a session or a program."""

import _signal  # the base of `signal`, without its enums: they cost a new process half a millisecond
import fcntl
import os
import resource
import signal

from .system import (
    NO_FOLLOW,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    PRIVATE,
    WORKSPACE,
    log,
    prctl,
    settings,
)
from .wire import loop, read_available

DEFAULT_IN_CHILDREN = (_signal.SIGCHLD, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGPIPE, _signal.SIGXFSZ)


def fork_child(name, become):
    """Forks a child that runs `become`, which must not return. Returns the child's pid. Raises OSError."""
    pid = os.fork()
    if pid:
        return pid
    try:
        become()
    except BaseException as error:
        log('%s: %r' % (name, error))
    finally:
        os._exit(126)


def become_keeper(news, become):
    """In a forked child: forks once more, and becomes the parent of the session or program and of all its orphans.

    It writes `dead <status>` to `news` when that first child ends. Never returns.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    first = os.fork()
    if first == 0:
        become()
    os.dup2(news, 3, inheritable=False)
    os.closerange(0, 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            os._exit(0)  # the first child and its last descendant are gone
        if pid == first:
            os.write(3, b'dead %d\n' % status)


class News:
    """Reads lines `<word> <number>`, which a keeper or a session writes about itself."""

    def __init__(self, fd, on_word):
        self.fd = fd
        self.on_word = on_word
        self.rest = b''
        loop.watch(fd, self.read)

    def read(self):
        data = None if self.fd is None else read_available(self.fd, 4096)
        if data == b'':
            self.close()
        elif data:
            *lines, self.rest = (self.rest + data).split(b'\n')
            for line in lines:
                word, _, number = line.partition(b' ')
                if number.isdigit():
                    self.on_word(word, int(number))

    def close(self):
        if self.fd is not None:
            loop.forget(self.fd)
            self.fd = None


def become_child():
    """In a forked child, before any code of the caller runs: what differs from the runner's own process."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_DUMPABLE, 1)
    score = os.open('/proc/self/oom_score_adj', os.O_WRONLY)
    os.write(score, b'1000')  # the kernel kills it before the runner
    os.close(score)
    for name, value in settings.get('rlimits', {}).items():
        limit = getattr(resource, name)
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)  # a small machine's own may be lower
        resource.setrlimit(limit, (value, value))
    os.nice(10)  # the runner must be scheduled among a hundred busy processes
    os.setsid()
    os.chdir(WORKSPACE)
    os.umask(0o022)
    for number in DEFAULT_IN_CHILDREN:
        _signal.signal(number, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def place_descriptors(placed, inherited):
    """Duplicates descriptors to the numbers where they are expected ({target: source}) and closes all others."""
    # Moves them out of the way first: a source may have the number that another target needs.
    high = [(target, fcntl.fcntl(source, fcntl.F_DUPFD, 900)) for target, source in placed.items()]
    for target, fd in high:
        os.dup2(fd, target, inheritable=target < 3 or inherited)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    kept = sorted(placed)
    for low, up in zip(kept, kept[1:] + [limit]):
        os.closerange(low + 1, up)


def private_file(name, data):
    """Writes a new file in PRIVATE and returns its path. Raises OSError.

    Code in the sandbox can write there too. So anything under that name is removed, and the file is created, never opened:
    a FIFO or a link there neither blocks nor redirects the write.
    """
    path = PRIVATE + '/' + name
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600), 'wb') as file:
        file.write(data)
    return path
