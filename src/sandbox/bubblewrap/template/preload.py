"""Packages that a template imports before it forks, so that its sandboxes need not."""

import ctypes
import importlib.machinery
import importlib.util
import math
import os
import sys
import time

from .kernel import MS_NODEV, MS_NOSUID, call, mount

# Builds of OpenBLAS use different names for this function.
SET_THREADS = [before + 'openblas_set_num_threads' + after for before in ('', 'scipy_') for after in ('', '64_')]
ONE_THREAD = ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'NUMEXPR_NUM_THREADS')
THREADS_END_WITHIN = 5  # seconds


class Preloaded:
    def __init__(self, modules):
        self.imported = import_modules(modules) if modules else set()
        self.blas_threads = find_blas_threads()

    def refresh(self, cpus):
        """In each Python session, before its first code: undoes what the import in the template makes different.

        The random seed and the number of threads would be the template's, a module of the code's own in the workspace
        would not hide a package, and matplotlib's cache directory would be missing.
        """
        if not self.imported:
            return
        if 'numpy.random' in sys.modules:
            sys.modules['numpy.random'].seed()
        if self.blas_threads and cpus > 1:
            self.blas_threads(min(math.ceil(cpus), len(os.sched_getaffinity(0))))
        for name in {path.partition('.')[0] for path in os.listdir()} & self.imported:
            spec = importlib.machinery.PathFinder.find_spec(name, [os.getcwd()])
            if has_code(spec):
                for known in [known for known in sys.modules if known.partition('.')[0] == name]:
                    del sys.modules[known]
        if 'matplotlib' in sys.modules:
            os.makedirs(sys.modules['matplotlib'].get_cachedir(), exist_ok=True)


def import_modules(names):
    """Imports the modules that the root has. Returns the top-level names of all that are loaded now.

    Runs with a temporary /tmp, and with variables that keep libraries from starting threads, which a fork would lose.
    """
    found = [name for name in names if has_code(importlib.util.find_spec(name.partition('.')[0]))]
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


def has_code(spec):
    """False for a mere directory of that name."""
    return spec is not None and spec.origin is not None


def find_blas_threads():
    """The function that sets the number of threads of the library behind numpy. None if that is not OpenBLAS."""
    with open('/proc/self/maps') as maps:
        paths = {line.split()[-1] for line in maps if 'openblas' in line}
    found = [getattr(ctypes.CDLL(path), name, None) for path in sorted(paths) for name in SET_THREADS]
    return next(filter(None, found), None)


def threads():
    return len(os.listdir('/proc/self/task'))


def writable_shares():
    """Counts writable shared mappings: memory that all children would share."""
    with open('/proc/self/maps') as maps:
        return sum(line.split()[1].endswith('s') and line.split()[1][1] == 'w' for line in maps)
