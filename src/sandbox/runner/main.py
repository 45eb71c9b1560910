"""The runner: PID 1 inside a sandbox. Python 3.9 or newer, standard library only.

It speaks length-prefixed frames on stdin and stdout (frames.ts), answers requests by id, never blocks on user code, and ends
with everything inside when its stdin closes or its deadline passes.

Each language has one session (a `Lane`). Its processes form a chain: runner → keeper → session → processes of the code. The
keeper is a child subreaper, so every descendant stays below it, daemons included: killing a step kills all of them. The
first session of a sandbox has no keeper, because a fork costs a millisecond; its orphans become children of the runner,
PID 1, and nothing else does. A step is over when the session says so or dies, never when a pipe closes.

The host joins these modules into one file (python-bundle.ts): a fresh sandbox compiles or loads one file instead of twenty.
"""

import json
import os
import signal
import sys
import time

from .imports import load_site  # noqa: F401 (a template calls it)
from .processes import reap
from .requests import on_frame
from .steps import lanes
from .system import PR_SET_DUMPABLE, WORKSPACE, prctl, settings
from .wire import loop, read_available

SPARE_AFTER = 0.02  # seconds without a request after which the sandbox counts as waiting in a pool


def preload():
    """Imports what a Python session needs, while no request is pending."""
    import ast
    import functools
    import importlib.util
    import io
    import linecache
    import site
    import traceback
    import types
    import warnings


def watch_children():
    wake, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # Python handles SIGINT, so code inside could send it to us. The kernel drops all others for PID 1.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def on_child():
        read_available(wake, 4096)
        reap()

    loop.watch(wake, on_child)


def main(given):
    prctl(PR_SET_DUMPABLE, 0)
    settings.update(given)
    loop.open()
    watch_children()
    os.umask(0o022)  # independent of the host's
    os.makedirs(WORKSPACE + '/outputs', exist_ok=True)
    loop.idle.append(preload)
    loop.at('spare', time.monotonic() + SPARE_AFTER, lanes['python'].prepare)
    loop.send({'id': 0, 'op': 'ready', 'python': sys.version.split()[0]})
    loop.run(on_frame)


if __name__ == '__main__':
    main(json.loads(sys.argv[1]))
