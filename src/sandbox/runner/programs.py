"""Programs that run beside the steps."""

import errno
import os

from .children import News, become_child, become_keeper, fork_child, place_descriptors
from .processes import children, end_of, kill_tree
from .streams import Stream
from .system import WORKSPACE, log
from .wire import CHUNK, Failure, loop, read_available

STDERR_BYTES = 256 * 1024  # sent of a program's stderr; protocol.ts has the same number

programs = {}


class Program:
    """A program with a stream to it. It ends with every process below it."""

    def __init__(self, header):
        self.id = header['id']
        self.end = None
        self.stderr_left = STDERR_BYTES
        theirs, ours = zip(os.pipe(), os.pipe()[::-1], os.pipe()[::-1], os.pipe()[::-1])
        become = lambda: become_program(header, *theirs[:3])
        try:
            self.keeper = fork_child(header['argv'][0], lambda: become_keeper(theirs[3], become))
        except OSError as error:
            for fd in ours:
                os.close(fd)
            raise Failure('unavailable', 'The program could not be started: %s.' % error.strerror)
        finally:
            for fd in theirs:
                os.close(fd)
        to_program, from_program, self.stderr, news = ours
        programs[self.id] = self
        children[self.keeper] = self.keeper_ended
        self.stream = Stream((self.id, 0), from_program, to_program, self.finish)
        loop.watch(self.stderr, self.on_stderr)
        self.news = News(news, self.on_word)

    def on_stderr(self):
        data = read_available(self.stderr, CHUNK)
        if data is None:
            return
        if not data:
            loop.forget(self.stderr)
            self.stderr = None
            return
        if self.stderr_left > 0:
            loop.send({'id': self.id, 'op': 'err'}, data[: self.stderr_left])
            self.stderr_left -= len(data)

    def on_word(self, word, number):
        if word == b'dead':
            self.died(end_of(number))

    def keeper_ended(self, _):
        if programs.get(self.id) is self:
            self.news.read()  # what the keeper wrote before it ended
            self.died({'kind': 'signal', 'signal': 'SIGKILL'})

    def died(self, end):
        """Its output is still read to the end; processes that it left behind are killed."""
        if self.end:
            return
        self.end = end
        kill_tree(self.keeper)
        self.stream.complete = True
        self.stream.inbox.clear()
        self.stream.on_writable()
        self.finish()

    def kill(self):
        if not self.end:
            self.died({'kind': 'cancelled'})

    def finish(self):
        if not self.end or self.stream.source is not None or self.id not in programs:
            return
        del programs[self.id]
        self.stream.close()
        if self.stderr is not None:
            loop.forget(self.stderr)
        self.news.close()
        loop.send({'id': self.id, 'op': 'done', 'end': self.end})


def become_program(header, stdin, stdout, stderr):
    """In a forked child: becomes the program of a `spawn` request. Never returns."""
    become_child()
    if header['pipes'] == 'stdio':
        placed = {0: stdin, 1: stdout, 2: stderr}
    else:
        placed = {0: os.open('/dev/null', os.O_RDONLY), 1: stderr, 2: stderr, 3: stdin, 4: stdout}
    os.chdir(header.get('cwd') or WORKSPACE)
    place_descriptors(placed, True)
    argv = header['argv']
    try:
        os.execvpe(argv[0], argv, {**os.environ, **header.get('env', {})})
    except OSError as error:
        log('%s: %s' % (argv[0], error.strerror))
        os._exit(127 if error.errno == errno.ENOENT else 126)
