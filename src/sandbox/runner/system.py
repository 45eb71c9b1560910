"""What every module of the runner needs of the system: paths, settings, prctl and the log."""

import ctypes
import os

WORKSPACE = '/workspace'
PRIVATE = '/run/errand'
WRITABLE = (WORKSPACE, '/tmp', '/dev/shm')
NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36

settings = {}  # the argument of main(): `rlimits`, and `refresh` from a template


def prctl(option, value):
    libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def log(text):
    os.write(2, (text + '\n').encode('utf-8', 'replace'))
