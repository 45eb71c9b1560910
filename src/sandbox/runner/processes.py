"""Finding, killing and reaping processes of the sandbox."""

import os
import signal

children = {}  # pid of each child that the runner forked itself → called with its status when it has ended


def process_stats():
    """Each process's pid and the fields of /proc/PID/stat from the third on (its state)."""
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open('/proc/%s/stat' % name, 'rb') as file:
                    yield int(name), file.read().rsplit(b')', 1)[1].split()
            except (OSError, IndexError):
                pass  # it has just ended


def task_count():
    """Processes and threads, the runner's own included: what RLIMIT_NPROC counts."""
    return sum(int(fields[17]) for _, fields in process_stats())


def tree_of(root, alone=False):
    """`root` and all its descendants. `alone`: also children that the kernel gave to the runner, because `root` has no
    keeper."""
    below = {}
    for pid, fields in process_stats():
        below.setdefault(int(fields[1]), []).append(pid)
    orphans = [pid for pid in below.get(os.getpid(), []) if pid not in children] if alone else []
    found, todo = set(), [root, *orphans]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += below.get(pid, [])
    return found


def kill_tree(root, alone=False):
    """Kills all that `tree_of` finds. Stops them first, so that none can fork between two looks."""
    stopped = set()
    for _ in range(64):
        fresh = tree_of(root, alone) - stopped
        if not fresh:
            break
        for pid in fresh:
            signal_quietly(pid, signal.SIGSTOP)
        stopped |= fresh
    else:
        # It forks faster than it is found: kill everything but the runner. Other sessions report their end themselves.
        signal_quietly(-1, signal.SIGKILL)
    for pid in stopped:
        signal_quietly(pid, signal.SIGKILL)
    return stopped


def signal_quietly(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def reap():
    """Collects every dead child: the runner's own, and orphans whose keeper is gone."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        on_end = children.pop(pid, None)
        if on_end:
            on_end(status)


def end_of(status):
    """A wait status as an ExecEnd of port.ts."""
    if not os.WIFSIGNALED(status):
        return {'kind': 'exit', 'code': os.WEXITSTATUS(status)}
    number = os.WTERMSIG(status)
    try:
        return {'kind': 'signal', 'signal': signal.Signals(number).name}
    except ValueError:
        return {'kind': 'signal', 'signal': 'SIG%d' % number}
