"""Steps of code, queued by language."""

import json
import os
import time

from .children import private_file
from .limits import limits_reached
from .output import Output
from .processes import end_of, kill_tree, reap
from .result_file import LONG, ResultFile
from .sessions import Session
from .wire import loop

NAMES = {'python': 'Python', 'javascript': 'JavaScript', 'bash': 'bash'}
NODES = ('/errand/bin/node', '/usr/local/bin/node', '/usr/bin/node')
DEAD_WITHIN = 2  # seconds to wait for killed processes to be gone


class Step:
    def __init__(self, header, code):
        self.id = header['id']
        self.timeout = header['timeoutMs'] / 1000
        self.code = code
        cap = header['outputBytes']
        self.file = ResultFile(header['saveAs'], header['saveBytes'], min(LONG, cap))
        self.output = Output(self.id, cap, self.file)
        self.path = None  # of its code, while it runs
        self.started = 0
        self.restarted = False
        self.full = None

    def finish(self, end):
        self.output.finish()
        duration = int((time.monotonic() - self.started) * 1000) if self.started else 0
        saved = self.file.close()
        loop.send({'id': self.id, 'op': 'done', 'end': end, 'truncated': self.output.cut > 0,
                   'durationMs': duration, 'sessionRestarted': self.restarted, **({'saved': saved} if saved else {}),
                   'full': limits_reached() if self.full is None else self.full})
        try:
            os.unlink(self.path or '')
        except OSError:
            pass


class Lane:
    """The steps of one language, one after the other.

    idle → running (a step is with the session) → idle, when the step is done or the session dies
    running → killing (timeout or cancel: every process below the keeper is killed) → idle, when all are gone
    """

    def __init__(self, language):
        self.language = language
        self.session = None
        self.had_session = False
        self.step = None
        self.queue = []
        self.dying = None  # (pids, how the step ends, when to stop waiting)

    def add(self, step):
        self.queue.append(step)
        self.next()

    def next(self):
        while self.queue and not self.step and not self.dying:
            self.start(self.queue.pop(0))

    def start(self, step):
        step.started = time.monotonic()
        node = find_node() if self.language == 'javascript' else None
        missing = self.language == 'javascript' and not node or self.language == 'bash' and not os.path.exists('/bin/bash')
        if missing:
            self.report_missing(step)
            return step.finish({'kind': 'exit', 'code': 127})
        try:
            step.path = private_file('step-%d' % step.id, step.code)
            if not self.session:
                self.session = Session(self, node)
                step.restarted = self.had_session
            self.had_session = True
        except OSError as error:
            step.output.feed(('The step could not be started: %s.\n' % error.strerror).encode())
            return step.finish({'kind': 'exit', 'code': 126})
        self.step = step
        late, self.session.late = self.session.late, bytearray()
        step.output.feed(bytes(late))
        end = {'kind': 'timeout', 'afterMs': int(step.timeout * 1000)}
        loop.at(('timeout', step.id), step.started + step.timeout, lambda: self.kill(end))
        self.session.ask(step.path)

    def report_missing(self, step):
        step.output.feed(('%s is not available in this sandbox.\n' % NAMES[self.language]).encode())

    def prepare(self):
        """Starts the session before the first step. Until then it takes in new variables of the environment."""
        try:
            self.session = Session(self, None)
        except OSError:
            pass  # the first step tries again

    def set_environment(self, variables):
        if self.session and not self.had_session:
            self.session.ask(json.dumps(variables))

    def step_done(self, end):
        if not self.step or self.dying:
            return
        if self.session:
            self.session.drain()
        step, self.step = self.step, None
        loop.timers.pop(('timeout', step.id), None)
        step.finish(end)
        self.next()

    def session_died(self, status):
        session = self.session
        if not session or self.dying:
            return
        end = end_of(status)
        session.drain()
        if not session.spoke and end.get('code') in (126, 127) and self.step:
            self.report_missing(self.step)
        self.session = None
        session.leave()
        self.step_done(end)

    def kill(self, end):
        """Ends the running step with every process below the keeper. The session's state is lost."""
        if not self.step or self.dying:
            return
        loop.timers.pop(('timeout', self.step.id), None)
        self.step.full = limits_reached()
        self.dying = (kill_tree(self.session.keeper, self.session.alone), end, time.monotonic() + DEAD_WITHIN)
        self.wait_for_dead()

    def wait_for_dead(self):
        reap()
        pids, end, until = self.dying
        alive = {pid for pid in pids if os.path.exists('/proc/%d' % pid)}
        if alive and time.monotonic() < until:
            return loop.at(('dying', self.language), time.monotonic() + 0.002, self.wait_for_dead)
        self.session.drain()
        self.session.leave()
        step = self.step
        self.session = self.step = self.dying = None
        step.finish(end)
        self.next()

    def cancel(self, step_id):
        if self.step and self.step.id == step_id:
            return self.kill({'kind': 'cancelled'})
        for step in self.queue:
            if step.id == step_id:
                self.queue.remove(step)
                return step.finish({'kind': 'cancelled'})


def find_node():
    return next((path for path in NODES if os.access(path, os.X_OK)), None)


lanes = {language: Lane(language) for language in NAMES}
