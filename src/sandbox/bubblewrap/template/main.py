"""The template: a process inside an outer bubblewrap that has the runner loaded, and forks into one sandbox a request.

Started as `python3 -I -S template.py runner.py [MODULE…]`. It is PID 1 of the outer sandbox, and root of that user namespace
only: on the host it is a user that owns nothing. It imports those MODULEs that its root has. Each request is one JSON line
on stdin ({id, nonce, uid, profile, places, rlimits, cpus}), each answer {id, pid} or {id, error} on stdout. Nothing that a
caller wrote ever reaches it. A line before the first request has the seccomp programs and the plan of a root.

A child keeps only the nonce and its own connection to the host. It gets new namespaces, new writable mounts, a uid of its
own inside a user namespace of its own, no capability, and the seccomp filter. None of this is ever undone, because a child
is used once. The template has one thread, and no descriptor that a child could keep.
"""

import gc
import json
import os
import resource
import signal
import socket
import sys

from .isolation import isolate
from .kernel import CLONE_NEWPID, Filter, call
from .preload import Preloaded, threads, writable_shares

DOOR = '/run/errand/door/socket'


def load_runner(path):
    with open(path, encoding='utf-8') as file:
        source = file.read()
    found = {'__name__': 'runner', '__file__': path}
    exec(compile(source, path, 'exec'), found)
    found['preload']()
    found['load_site']()
    return found


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
        if os.read(0, 3) != b'go\n':  # the host has put it into its cgroups
            os._exit(0)

    try:
        isolate(request, given, number, wait)
    except OSError as error:
        os.write(1, b'failed %s\n' % str(error).encode())
        os._exit(1)
    os.write(1, b'ok\n')
    gc.enable()
    runner['main']({'rlimits': request['rlimits'], 'refresh': lambda: preloaded.refresh(request['cpus'])})


def fork(request, given, number, own_pids):
    # Only the next child enters the new pid namespace; the one after it needs another.
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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps its children
    requests = sys.stdin.buffer
    given = json.loads(requests.readline())
    given['filters'] = {profile: Filter(program) for profile, program in given['filters'].items()}
    gc.disable()
    gc.freeze()  # objects stay on pages that the children share
    own_pids = os.open('/proc/self/ns/pid', os.O_RDONLY)
    os.write(1, b'{"ready": true, "threads": %d, "shares": %d}\n' % (threads(), writable_shares()))
    for number, line in enumerate(requests):
        request = json.loads(line)
        try:
            answer = {'pid': fork(request, given, number, own_pids)}
        except OSError as error:
            answer = {'error': str(error)}
        os.write(1, json.dumps({'id': request['id'], **answer}).encode() + b'\n')


if __name__ == '__main__':
    runner = load_runner(sys.argv[1])
    preloaded = Preloaded(sys.argv[2:])
    main()
