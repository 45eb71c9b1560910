"""A language's session: the process that runs its steps and keeps their state."""

import fcntl
import os
import signal
import struct

from .children import News, become_child, become_keeper, fork_child, place_descriptors, private_file
from .javascript_session import NODE_SESSION
from .processes import children
from .python_session import python_session
from .wire import CHUNK, loop, read_available

LATE_BYTES = 64 * 1024  # output of background processes kept between two steps
FIONREAD = 0x541B
BASH_SESSION = r'''
while IFS= read -r -u 1000 __errand_step; do
  . "$__errand_step" </dev/null
  printf 'done %d\n' "$?" >&1001
  set +eux 2>/dev/null
done
'''


def become_session(language, node, requests, news, output):
    """In a forked child: sets limits and descriptors, then becomes the language's session. Never returns."""
    become_child()
    request_fd, news_fd = (1000, 1001) if language == 'bash' else (3, 4)
    nothing = os.open('/dev/null', os.O_RDONLY)
    place_descriptors({0: nothing, 1: output, 2: output, request_fd: requests, news_fd: news}, language != 'python')
    if language == 'python':
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        python_session(request_fd, news_fd)
    elif language == 'bash':
        script = private_file('session.sh', BASH_SESSION.encode())
        os.execv('/bin/bash', ['bash', '--noprofile', '--norc', script])
    else:
        os.execv(node, ['node', '--no-warnings', private_file('session.cjs', NODE_SESSION.encode())])


class Session:
    """A session below its keeper. The first session of a sandbox has no keeper. Raises OSError if it cannot fork."""

    any_yet = False

    def __init__(self, lane, node):
        requests, self.requests = os.pipe()
        news_fd, news = os.pipe()
        self.output, output = os.pipe()
        self.lane = lane
        self.spoke = False  # whether it has finished a step
        self.late = bytearray()
        self.alone = os.getpid() == 1 and not Session.any_yet
        become = lambda: become_session(lane.language, node, requests, news, output)
        try:
            self.keeper = fork_child('%s session' % lane.language, lambda: self.become(news, become))
        except OSError:
            for fd in (self.requests, news_fd, self.output):
                os.close(fd)
            raise
        finally:
            for fd in (requests, news, output):
                os.close(fd)
        Session.any_yet = True
        children[self.keeper] = self.keeper_ended
        self.news = News(news_fd, self.on_word)
        loop.watch(self.output, self.on_output)

    def become(self, news, become):
        if self.alone:
            signal.set_wakeup_fd(-1)
            become()
        become_keeper(news, become)

    def ask(self, request):
        try:
            os.write(self.requests, request.encode() + b'\n')
        except OSError:
            pass  # it has just died: the keeper reports it

    def on_word(self, word, number):
        if self.lane.session is not self:
            return
        if word == b'done':
            self.spoke = True
            self.lane.step_done({'kind': 'exit', 'code': number})
        elif word == b'dead':
            self.lane.session_died(number)

    def keeper_ended(self, status):
        if self.lane.session is self:
            self.news.read()  # what it wrote before it ended
        if self.lane.session is self:
            self.lane.session_died(status if self.alone else signal.SIGKILL)

    def on_output(self, limit=CHUNK):
        data = read_available(self.output, min(limit, CHUNK))
        if data is None:
            return 0
        step = self.lane.step if self.lane.session is self else None
        if not data:  # closed, or its last holder has ended
            loop.forget(self.output)
            self.output = None
        elif step:
            step.output.feed(data)
        elif len(self.late) < LATE_BYTES:
            self.late += data[:LATE_BYTES]
        return len(data)

    def drain(self):
        """Reads what was written before the end of the step, and no more: a daemon may write for ever."""
        if self.output is None:
            return
        left = struct.unpack('i', fcntl.ioctl(self.output, FIONREAD, b'\0' * 4))[0]
        while left > 0:
            got = self.on_output(left)
            if not got:
                return
            left -= got

    def leave(self):
        """After its death. Its daemons may live on; their output is read and discarded."""
        os.close(self.requests)
