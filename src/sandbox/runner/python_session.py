"""A Python session: like a notebook's kernel it keeps state in __main__ and shows the last expression of a step."""

import json
import os
import sys

from .figures import Figures
from .imports import AfterImport, Installed, load_site, widen_tables
from .mcp_module import add_errand_module
from .system import settings

COROUTINE = 0x80  # the flag of a code object that awaits outside of any function


class PythonSession:
    def __init__(self):
        import builtins
        import importlib.util  # before the import hooks, which need it
        import types

        load_site()
        sys.path.insert(0, '')
        sys.argv = ['']
        open_standard_streams()
        self.main = types.ModuleType('__main__')
        self.main.__builtins__ = builtins
        sys.modules['__main__'] = self.main
        self.figures = Figures()
        self.after_import = AfterImport({'pandas': widen_tables, 'matplotlib.figure': self.figures.watch_saving})
        self.installed = Installed()
        sys.meta_path.insert(0, self.after_import)
        sys.meta_path.append(self.installed)
        self.count = 0

    def run(self, source):
        """Runs a step. Returns its exit code."""
        self.count += 1
        self.installed.look()
        add_errand_module()
        code = guarded(lambda: self.execute(source, '<step %d>' % self.count))
        return guarded(self.figures.save_open) or code

    def begin(self):
        """Before the first step: modules that the template has loaded behave as if the code loaded them now."""
        try:
            settings.get('refresh', lambda: None)()
        except OSError:
            pass  # a directory is full, or closed to its owner
        self.after_import.act_on_loaded()

    def execute(self, source, name):
        import ast
        import linecache

        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        tree = compile(source, name, 'exec', flags | ast.PyCF_ONLY_AST, True)
        echo = tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(';')
        last = tree.body.pop() if echo else None
        self.evaluate(compile(tree, name, 'exec', flags, True))
        if last is not None:
            value = self.evaluate(compile(ast.Expression(last.value), name, 'eval', flags, True))
            sys.displayhook(value)
            self.figures.save_image(value)

    def evaluate(self, code):
        value = eval(code, self.main.__dict__)
        if code.co_flags & COROUTINE:
            import asyncio

            value = asyncio.run(value)
        return value


def open_standard_streams():
    import io

    sys.stdin = open(0)
    for name, fd in (('stdout', 1), ('stderr', 2)):
        stream = io.TextIOWrapper(
            open(fd, 'wb', closefd=False), encoding='utf-8', errors='backslashreplace', line_buffering=True
        )
        setattr(sys, name, stream)
        setattr(sys, '__%s__' % name, stream)


def flush_standard_streams():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # the code closed it


def guarded(action):
    """Runs an action as Python runs a program: prints what it raises. Returns the exit code."""
    import traceback

    try:
        action()
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        tb = error.__traceback__
        while tb and tb.tb_frame.f_code.co_filename == guarded.__code__.co_filename:
            tb = tb.tb_next  # the runner's own frames
        traceback.print_exception(type(error), error, tb)
        return 1


def python_session(requests, news):
    """Serves requests, one a line: the path of a step's code, or variables of the environment as JSON. Never returns."""
    session = PythonSession()
    spare = os.open('/dev/null', os.O_RDONLY)  # code may use up every other descriptor
    with open(requests) as lines:
        for line in lines:
            if line.startswith('{'):
                os.environ.update(json.loads(line))
                continue
            if session.count == 0:
                session.begin()
            os.close(spare)
            with open(line.rstrip('\n'), encoding='utf-8', errors='replace') as file:
                source = file.read()
            spare = os.open('/dev/null', os.O_RDONLY)
            code = session.run(source)
            flush_standard_streams()
            os.write(news, b'done %d\n' % code)
    os._exit(0)
