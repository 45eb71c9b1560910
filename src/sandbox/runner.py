"""The runner: PID 1 inside a sandbox. Python standard library only, one file, Python 3.9 or newer.

It speaks length-prefixed frames on stdin and stdout (frames.ts: two big-endian u32, a JSON header, bytes), answers requests
by id, never blocks on what user code does, and ends with everything inside when its stdin closes or its deadline passes.

One session a language (a `Lane`). Its processes stand in a row: runner → keeper → session → whatever the code starts.
The keeper is a child subreaper, so every descendant, a daemon too, stays below it: that is what makes "kill the step"
mean every process of it. The first session of a sandbox does without (a fork costs a millisecond): what it loses comes to
the runner, PID 1, and nothing else does. A step is over when the session says so or dies, never when a pipe closes.
"""

import _signal  # what `signal` is made of, without its enums: they take half a millisecond of a new process
import codecs
import collections
import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time

WORKSPACE = '/workspace'
PRIVATE = '/run/errand'
WRITABLE = (WORKSPACE, '/tmp', '/dev/shm')
NODE_FALLBACK = '/errand/bin/node'
CHUNK = 256 * 1024
STREAM_CHUNK = 64 * 1024
WINDOW = 4  # chunks of a file under way before the other side must acknowledge one
SPARE_AFTER = 0.02  # seconds in which nobody asks anything: from then on the sandbox stands in a pool
LATE_BYTES = 64 * 1024  # what background processes may print between two steps
MARK_BYTES = 64  # room for the mark where output was cut
LIST_DEPTH = 100
LIST_BYTES = 4 * 1024 * 1024  # of one listing, as JSON; protocol.ts has the same number
PATH_BYTES = 4000  # the longest path that a request may name
MESSAGE_CHARS = 8192  # of an error
STDERR_BYTES = 256 * 1024  # of a spawned process, kept for whoever reads it
CONNECTIONS = 256  # under way at once on one listener
DEFAULT_IN_CHILDREN = (_signal.SIGCHLD, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGPIPE, _signal.SIGXFSZ)
NAMES = {'python': 'Python', 'javascript': 'JavaScript', 'bash': 'bash'}

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36


def prctl(option, value):
    libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def log(text):
    os.write(2, (text + '\n').encode('utf-8', 'replace'))


# ---------------------------------------------------------------- frames and the loop


class Loop:
    """epoll, timers and the two ends of the wire."""

    def __init__(self):
        self.readers = {}
        self.writers = {}
        self.timers = {}
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.idle = []  # done once, when there is nothing better to do
        self.blocked = False

    def open(self):
        """Of the process that runs it: a descriptor made before a fork would be shared."""
        self.epoll = select.epoll()
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self.epoll.register(0, select.EPOLLIN)
        self.epoll.register(1, 0)

    def watch(self, fd, handler):
        os.set_blocking(fd, False)
        self.readers[fd] = handler
        self.epoll.register(fd, select.EPOLLIN)

    def forget(self, fd):
        if self.readers.pop(fd, None):
            self.epoll.unregister(fd)
            os.close(fd)

    def want(self, fd, on_read=None, on_write=None):
        """What a descriptor is watched for from now on. Nothing: it is left alone, and stays open."""
        known = fd in self.readers or fd in self.writers
        for handlers, handler in ((self.readers, on_read), (self.writers, on_write)):
            if handler:
                handlers[fd] = handler
            else:
                handlers.pop(fd, None)
        events = (select.EPOLLIN if on_read else 0) | (select.EPOLLOUT if on_write else 0)
        if events:
            (self.epoll.modify if known else self.epoll.register)(fd, events)
        elif known:
            self.epoll.unregister(fd)

    def at(self, name, when, action):
        self.timers[name] = (when, action)

    def send(self, header, payload=b''):
        head = json.dumps(header).encode()
        self.outbox += struct.pack('>II', len(head), len(payload)) + head
        self.outbox += payload
        self.flush()

    def flush(self):
        try:
            while self.outbox:
                with memoryview(self.outbox) as view:
                    sent = os.write(1, view[:CHUNK])
                del self.outbox[:sent]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            os._exit(0)
        if self.blocked != bool(self.outbox):
            self.blocked = not self.blocked
            self.epoll.modify(1, select.EPOLLOUT if self.blocked else 0)

    def receive(self, on_frame):
        try:
            data = os.read(0, 4 * CHUNK)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)
        self.inbox += data
        while len(self.inbox) >= 8:
            head, body = struct.unpack_from('>II', self.inbox)
            end = 8 + head + body
            if len(self.inbox) < end:
                return
            header = json.loads(self.inbox[8 : 8 + head])
            payload = bytes(self.inbox[8 + head : end])
            del self.inbox[:end]
            on_frame(header, payload)

    def run(self, on_frame):
        while True:
            now = time.monotonic()
            for name in [name for name, (when, _) in self.timers.items() if when <= now]:
                _, action = self.timers.pop(name, (0, None))  # one timer may have taken another away
                if action:
                    action()
            soonest = min((when for when, _ in self.timers.values()), default=None)
            wait = -1 if soonest is None else max(0, soonest - time.monotonic())
            events = self.epoll.poll(0 if self.idle else wait)
            if not events and self.idle:
                self.idle.pop()()
            for fd, event in events:
                if fd == 0:
                    self.receive(on_frame)
                elif fd == 1:
                    if event & (select.EPOLLHUP | select.EPOLLERR):
                        os._exit(0)
                    self.flush()
                else:
                    if fd in self.readers and event & ~select.EPOLLOUT:
                        self.readers[fd]()
                    if fd in self.writers and event & ~select.EPOLLIN:
                        self.writers[fd]()


loop = Loop()


class Failure(Exception):
    """A request that cannot be met: a code of the port's SandboxErrorCode and a sentence."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


# ---------------------------------------------------------------- processes


def parents():
    found = {}
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open('/proc/%s/stat' % name, 'rb') as file:
                    found[int(name)] = int(file.read().rsplit(b')', 1)[1].split()[1])
            except (OSError, IndexError):
                pass
    return found


def tree_of(root, alone=False):
    """`root` and every descendant; of the session without a keeper also what it has lost: children of ours that are
    nobody's first process."""
    children = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    lost = [pid for pid in children.get(os.getpid(), []) if pid not in kept] if alone else []
    found, todo = set(), [root, *lost]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, [])
    return found


def limits_reached():
    """What is at its limit now, or may have been: LimitHit of port.ts."""
    found = []
    for place in WRITABLE:
        room = os.statvfs(place)
        if room.f_blocks and not room.f_bavail:
            found.append({'kind': 'space', 'place': place, 'mebibytes': room.f_blocks * room.f_frsize >> 20})
        if room.f_files and not room.f_ffree:
            found.append({'kind': 'files', 'place': place, 'count': room.f_files})
    rlimits = settings.get('rlimits', {})
    if 'RLIMIT_DATA' in rlimits:
        found.append({'kind': 'process_memory', 'mebibytes': rlimits['RLIMIT_DATA'] >> 20})
    most = rlimits.get('RLIMIT_NPROC')
    if most and tasks() >= most:
        found.append({'kind': 'processes', 'count': most})
    return found


def tasks():
    """Processes and threads, the runner's own too: what RLIMIT_NPROC counts."""
    count = 0
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open('/proc/%s/stat' % name, 'rb') as file:
                    count += int(file.read().rsplit(b')', 1)[1].split()[17])
            except (OSError, IndexError):
                pass
    return count


def kill_tree(root, alone=False):
    """Kills all that `tree_of` finds. First all are stopped, so that none forks away between two looks."""
    stopped = set()
    for _ in range(64):
        fresh = tree_of(root, alone) - stopped
        if not fresh:
            break
        for pid in fresh:
            signal_quietly(pid, signal.SIGSTOP)
        stopped |= fresh
    else:
        # It forks faster than it is found: end everything but the runner. The other sessions say so by themselves.
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
    """Takes the status of every dead child: keepers, and orphans whose keeper is gone."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        kept.discard(pid)
        for lane in lanes.values():
            session = lane.session
            if session and session.keeper == pid:
                session.on_news()  # what was said before it went
                if lane.session is session:
                    lane.session_died(status if session.alone else signal.SIGKILL)
        for process in list(processes.values()):
            if process.keeper == pid:
                process.keeper_gone()


# ---------------------------------------------------------------- output of a step

PREVIEW = 200  # characters of a line that is shown while the whole waits for the end
ROWS = 24  # lines that code can still go back to, as on a terminal
LONGEST = 16 * 1024  # characters of a line that can be rewritten; a longer one is settled as it comes
CONTROL = re.compile(
    '\r*\n|\r+|\x08+|\x07+'
    '|(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]'  # CSI: colours, cursor, erasing
    '|\x1b[]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\\\)'  # strings: titles, links
    '|\x1b[ -/]{0,8}[0-~]|\x1b'
)
NOT_PLAIN = re.compile('[\r\x07\x08\x1b\x9b]')
BEGUN = re.compile(  # the end of a chunk that the next one decides on
    '(?:(?<!\r)\r+|(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}|\x1b(?:[]PX^_][^\x07\x1b\n]{0,4096}\x1b?|[ -/]{0,8}))\\Z'
)


class Row:
    __slots__ = ('text', 'rewritten', 'told')

    def __init__(self):
        self.text = ''
        self.rewritten = False
        self.told = None  # what of it followers have seen

    def seen(self):
        return self.text.rstrip() if self.rewritten else self.text


class Screen:
    """Text as a terminal shows it in the end: a progress bar in its last state, no escape sequences.

    A line is settled when the next one begins. From one on that was rewritten the last ROWS stay open: bars that stand
    below each other are rewritten by going up and down.
    """

    def __init__(self):
        self.rows = [Row()]
        self.at = self.column = 0
        self.held = ''

    def write(self, text):
        """Rows that are settled now, each with its line end."""
        text = self.held + text
        begun = BEGUN.search(text, max(0, len(text) - 4200))
        cut = begun.start() if begun else len(text)
        self.held, text = text[cut:], text[:cut]
        settled = []
        row = self.rows[0]
        if len(self.rows) == 1 and self.column == len(row.text) and row.told is None and not NOT_PLAIN.search(text):
            lines, end, rest = text.rpartition('\n')  # whole lines need no looking at
            if end and not row.rewritten:
                row.text, text = row.text + lines + end, rest
                settled.append(self.rows.pop())
                self.rows.append(Row())
                self.column = 0
        done = 0
        for found in CONTROL.finditer(text):
            self.put(text[done : found.start()], settled)
            self.control(found.group(), settled)
            done = found.end()
        self.put(text[done:], settled)
        return settled

    def put(self, text, settled):
        if not text:
            return
        row, column = self.rows[self.at], self.column
        if column == len(row.text):
            row.text += text
        else:
            row.text = row.text[:column].ljust(column) + text + row.text[column + len(text) :]
            row.rewritten = True
        self.column += len(text)
        if len(row.text) > LONGEST:
            for above in self.rows[: self.at]:
                above.text += '\n'
            settled += self.rows[: self.at + 1]
            self.rows[: self.at + 1] = [Row()]
            self.at = self.column = 0

    def control(self, found, settled):
        row, kind = self.rows[self.at], found[-1]
        if kind == '\n':
            self.at += 1
            self.column = 0
            if self.at == len(self.rows):
                self.rows.append(Row())
            while self.at and (not self.rows[0].rewritten or len(self.rows) > ROWS):
                settled.append(self.ended(self.rows.pop(0), '\n'))
                self.at -= 1
        elif kind == '\r':
            row.rewritten = True
            self.column = 0
        elif kind == '\b':
            self.column = max(0, self.column - len(found))
        elif found[0] == '\x9b' or found[:2] == '\x1b[':
            digits = found.strip('\x1b[\x9b' + kind)
            if digits.isdigit() or not digits:
                self.move(row, kind, int(digits[:5] or 0))

    def move(self, row, kind, number):
        steps = number or 1
        if kind in 'AF':
            self.at = max(0, self.at - steps)
        elif kind in 'BE':
            self.at = min(len(self.rows) - 1, self.at + steps)
        elif kind == 'C':
            self.column = min(LONGEST, self.column + steps)
        elif kind == 'D':
            self.column = max(0, self.column - steps)
        elif kind == 'G':
            self.column = min(LONGEST, steps) - 1
        elif kind == 'K' or kind == 'J' and number == 0:
            before = row.text
            row.text = '' if number == 2 else ' ' * self.column + before[self.column :] if number else before[: self.column]
            row.rewritten = row.rewritten or row.text != before
            if kind == 'J':
                del self.rows[self.at + 1 :]
        if kind in 'EF':
            self.column = 0

    def ended(self, row, end):
        row.text = row.seen() + end
        return row

    def finish(self):
        *above, last = self.rows
        return [self.ended(row, '\n') for row in above] + [self.ended(last, '')]


class Output:
    """What a step prints: settled lines are kept up to half the cap and sent as they come; of the rest the end is kept,
    and sent last, behind a mark, which counts. Lines that are not settled are shown now and then, for whoever follows
    (`live`)."""

    def __init__(self, step_id, cap):
        self.id = step_id
        self.decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self.screen = Screen()
        self.head_left = cap // 2
        self.tail_cap = cap - cap // 2
        self.tail = bytearray()
        self.cut = 0
        self.live_left = cap  # of what is shown before it is settled
        self.open = ''  # the unfinished line that was shown last
        self.began = self.shown = 0

    def feed(self, data):
        self.settle(self.screen.write(self.decoder.decode(data)))
        name = ('show', self.id)
        if name in loop.timers or self.live_left <= 0:
            return
        changed = [row for row in self.screen.rows if row.text and row.seen() != row.told]
        if changed or not self.head_left:
            now = time.monotonic()
            self.began = self.began or now
            # What goes on for an hour is shown some seventy times, not every second.
            seldom = not self.head_left or all(row.rewritten for row in changed)
            pause = max(1, (now - self.began) / 10) if seldom else 0.2
            show = self.show_open if self.head_left else self.show_newest
            loop.at(name, max(now + 0.2, self.shown + pause), show)

    def show_open(self):
        """What is on the screen and not settled, as far as it is news, and small enough to be kept."""
        self.shown = time.monotonic()
        *above, last = self.screen.rows
        for row in above:
            if row.seen() != row.told:
                self.show(row, row.seen() + '\n')
        if last.text and last.seen() != last.told and 4 * len(last.text) < self.head_left:
            self.show(last, last.seen())
            self.open = last.told

    def show_newest(self):
        """All that is shown as it comes was shown: from here on a line now and then, so that followers see it go on."""
        self.shown = time.monotonic()
        end = max(0, self.tail.rfind(b'\n'))
        begin = self.tail.rfind(b'\n', 0, end) + 1
        newest = self.screen.rows[-1].seen() or self.tail[begin:end].decode('utf-8', 'replace')
        line = '\n… ' + newest[:PREVIEW]
        if line != self.open:
            self.open = line
            self.live_left -= len(line)
            loop.send({'id': self.id, 'op': 'live'}, line.encode('utf-8', 'replace'))

    def show(self, row, text):
        """Goes on with the line that was shown last, where that is what it does."""
        begun, self.open, row.told = self.open, '', text.rstrip('\n')
        self.live_left -= len(text)
        text = text[len(begun) :] if text.startswith(begun) else '\n' + text
        for at in range(0, len(text), CHUNK // 4):  # a character has at most four bytes
            piece = text[at : at + CHUNK // 4].encode('utf-8', 'replace')
            loop.send({'id': self.id, 'op': 'live'}, piece)

    def settle(self, rows):
        fresh = []  # lines that nobody has seen go in one piece: a frame for each would keep the host busy
        for row in rows:
            if row.told is None and self.open == '':
                fresh.append(row.text)
                continue
            self.emit(self.take(''.join(fresh)))
            fresh.clear()
            head = self.take(row.text)
            if head and (row.told != row.text.rstrip('\n') or self.open == row.told):
                self.show(row, head.decode())
            self.emit(head, True)
        self.emit(self.take(''.join(fresh)))
        if len(self.tail) > 2 * self.tail_cap + CHUNK:
            self.shorten(self.tail_cap)

    def take(self, text):
        """What of it is kept as it comes; the rest goes to the tail."""
        data = text.encode('utf-8', 'replace')
        head = self.take_head(data)
        self.tail += data[len(head) :]
        return head

    def take_head(self, data):
        size = self.head_left
        while 0 < size < len(data) and data[size] & 0xC0 == 0x80 and self.head_left - size < 3:
            size -= 1  # not through the middle of a character
        self.head_left = 0 if size < len(data) else self.head_left - len(data)
        return data[:size]

    def emit(self, data, quiet=False):
        for at in range(0, len(data), CHUNK):
            loop.send({'id': self.id, 'op': 'out', **({'quiet': True} if quiet else {})}, data[at : at + CHUNK])

    def shorten(self, room):
        over = len(self.tail) - room
        if over > 0:
            while over < len(self.tail) and self.tail[over] & 0xC0 == 0x80:
                over += 1
            del self.tail[:over]
            self.cut += over

    def finish(self):
        loop.timers.pop(('show', self.id), None)
        self.settle(self.screen.write(self.decoder.decode(b'', True)) + self.screen.finish())
        if self.cut or len(self.tail) > self.tail_cap:
            self.shorten(self.tail_cap - MARK_BYTES)
            self.emit(('\n[… %s bytes of output cut here …]\n' % format(self.cut, ',')).encode())
        self.emit(bytes(self.tail))


# ---------------------------------------------------------------- sessions

BASH_SESSION = r'''
while IFS= read -r -u 1000 __errand_step; do
  . "$__errand_step" </dev/null
  printf 'done %d\n' "$?" >&1001
  set +eux 2>/dev/null
done
'''

# The inspector evaluates as a developer console does: state between steps, `let` and `const` said again, await anywhere,
# the value of the last expression. It knows no `import`, so `$import` stands in: for the call always, for the statement
# where V8 has refused the code and so nothing of it has run.
NODE_SESSION = r"""
const fs = require('node:fs'), net = require('node:net')
const { Session } = require('node:inspector'), { createRequire } = require('node:module')
const { pathToFileURL } = require('node:url'), { inspect } = require('node:util')
const hidden = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
const here = () => pathToFileURL(process.cwd() + '/').href
hidden('require', createRequire('/workspace/session.js'))
hidden('$import', (name) => import(/^\.{0,2}\//.test(name) ? new URL(name, here()).href : name))
hidden('$echo', (value) => console.log(inspect(value)))
const inspector = new Session()
inspector.connect()
const post = (method, params) => new Promise((resolve, reject) =>
  inspector.post(method, params, (error, outcome) => (error ? reject(new Error(error.message)) : resolve(outcome))))

let failed = false
const report = (told) => {
  failed = true
  console.error(told.replace(/\n    at .*(node:|session\.cjs).*|\n    at new Promise \(<anonymous>\)/g, ''))
}
const onUncaught = (error) => report(error instanceof Error ? error.stack ?? String(error) : 'Uncaught ' + inspect(error))
process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught)

const STATEMENT = /(?<=^|;)[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s+from\s*|\{([^}]*)\}\s*from\s*|from\s*)?(['"][^'"\n]+['"])[ \t]*;?/gm
const withoutStatements = (code) => code.replace(STATEMENT, (all, name, space, list, from) => {
  const named = (list ?? '').split(',').map((part) => part.trim().replace(/\s+as\s+/, ': ')).filter(Boolean)
  const parts = (name ? ['default: ' + name] : []).concat(named)
  const target = space ?? (parts.length ? `{ ${parts.join(', ')} }` : undefined)
  return (target ? `const ${target} = ` : '') + `await $import(${from});`
})
const evaluate = (code, name) => post('Runtime.evaluate', {
  expression: code.replace(/(?<![\w$.])import\s*\(/g, '$import(') + '\n//# sourceURL=' + name,
  replMode: true, awaitPromise: true, objectGroup: 'step',
})
const run = async (code, name) => {
  failed = false
  let { result, exceptionDetails } = await evaluate(code, name)
  if (exceptionDetails?.exception?.description?.startsWith('SyntaxError: Cannot use import statement'))
    ({ result, exceptionDetails } = await evaluate(withoutStatements(code), name))
  if (exceptionDetails) {
    const { exception, text, lineNumber, columnNumber } = exceptionDetails
    const told = exception.className === 'SyntaxError' && !exception.description.includes('at ' + name)
      ? exception.description.split('\n')[0] + `\n    at ${name}:${lineNumber + 1}:${columnNumber + 1}`
      : exception.subtype === 'error' ? exception.description : text + ' ' + (exception.description ?? inspect(exception.value))
    report(told)
  } else if (result.type === 'object' && result.objectId || result.type === 'function')
    await post('Runtime.callFunctionOn', { objectId: result.objectId, functionDeclaration: 'function () { $echo(this) }' })
  else if (result.type !== 'undefined') console.log('value' in result ? inspect(result.value) : result.description)
  await post('Runtime.releaseObjectGroup', { objectGroup: 'step' })
  return failed ? 1 : 0
}

const requests = new net.Socket({ fd: 3 })
let line = '', count = 0, queue = Promise.resolve()
requests.setEncoding('utf8').on('data', (data) => {
  const lines = (line + data).split('\n')
  line = lines.pop()
  for (const path of lines) queue = queue.then(async () => {
    const code = await run(fs.readFileSync(path, 'utf8'), `step-${++count}.js`).catch((error) => (onUncaught(error), 1))
    fs.writeSync(4, `done ${code}\n`)
  })
}).on('end', () => process.exit(0))
"""


def python_session(requests, news):
    """A notebook's kernel: state in __main__, the last expression echoed, figures saved. Never returns."""
    import ast
    import builtins
    import functools
    import importlib.util
    import io
    import linecache
    import traceback
    import types

    load_site()
    sys.path.insert(0, '')
    sys.argv = ['']
    sys.stdin = open(0)
    for name, fd in (('stdout', 1), ('stderr', 2)):
        stream = io.TextIOWrapper(
            open(fd, 'wb', closefd=False), encoding='utf-8', errors='backslashreplace', line_buffering=True
        )
        setattr(sys, name, stream)
        setattr(sys, '__%s__' % name, stream)
    main = types.ModuleType('__main__')
    main.__builtins__ = builtins
    sys.modules['__main__'] = main
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def evaluate(code):
        value = eval(code, main.__dict__)
        if code.co_flags & 0x80:  # a coroutine: there is an await outside of any function
            import asyncio

            value = asyncio.run(value)
        return value

    def execute(source, name):
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        tree = compile(source, name, 'exec', flags | ast.PyCF_ONLY_AST, True)
        echo = tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(';')
        last = tree.body.pop() if echo else None
        evaluate(compile(tree, name, 'exec', flags, True))
        if last is not None:
            show(evaluate(compile(ast.Expression(last.value), name, 'eval', flags, True)))

    def widen_tables(pandas):
        pandas.set_option('display.width', 160)
        pandas.set_option('display.max_columns', 40)

    saved = set()  # figures that the step itself saved, by id

    def watch_saving(module):
        savefig = module.Figure.savefig

        def watched(self, *args, **options):
            saved.add(id(self))
            return savefig(self, *args, **options)

        module.Figure.savefig = functools.wraps(savefig)(watched)

    class AfterImport:
        """Does something to a module as soon as the code has imported it."""

        todo = {'pandas': widen_tables, 'matplotlib.figure': watch_saving}

        def find_spec(self, name, path=None, target=None):
            action = self.todo.pop(name, None)
            spec = importlib.util.find_spec(name) if action else None
            if spec and spec.loader:
                load = spec.loader.exec_module

                def load_and_act(module):
                    load(module)
                    try:
                        action(module)
                    except Exception:
                        pass  # another module of that name

                spec.loader.exec_module = load_and_act
            elif action:
                self.todo[name] = action  # it may come yet
            return spec

    sys.meta_path.insert(0, AfterImport())
    user_site = os.path.expanduser('~/.local/lib/python%d.%d/site-packages' % sys.version_info[:2])

    def find_installed():
        """Takes in what pip has installed meanwhile. It goes before the system's own packages, as at Python's start."""
        if user_site in sys.path or not os.path.isdir(user_site):
            return False
        import site

        known = len(sys.path)
        site.addsitedir(user_site)
        added = sys.path[known:]
        del sys.path[known:]
        at = next((i for i, path in enumerate(sys.path) if path.endswith(('site-packages', 'dist-packages'))), known)
        sys.path[at:at] = added
        return True

    class Installed:
        """Asked last: a package that the running step has just installed."""

        def find_spec(self, name, path=None, target=None):
            return importlib.util.find_spec(name) if path is None and find_installed() else None

    sys.meta_path.append(Installed())

    def begin():
        """Before the first step: what was loaded before the fork (template.py) is as if the code would load it now."""
        try:
            settings.get('refresh', lambda: None)()
        except OSError:
            pass  # a place is full, or closed to its owner
        for name in [name for name in AfterImport.todo if name in sys.modules]:
            AfterImport.todo.pop(name)(sys.modules[name])

    def show(value):
        sys.displayhook(value)
        picture = getattr(type(value), '_repr_png_', None)
        data = picture(value) if picture else None
        if isinstance(data, bytes):
            with open(outputs('image'), 'wb') as file:
                file.write(data)
            print('[image saved: %s]' % os.path.relpath(file.name, WORKSPACE))

    counts = {'figure': 0, 'image': 0}

    def outputs(kind):
        os.makedirs(WORKSPACE + '/outputs', exist_ok=True)
        while True:  # an earlier session may have left some
            counts[kind] += 1
            path = WORKSPACE + '/outputs/%s-%d.png' % (kind, counts[kind])
            if not os.path.lexists(path):
                return path

    def guarded(action):
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
                tb = tb.tb_next
            traceback.print_exception(type(error), error, tb)
            return 1

    def save_figures():
        pyplot = sys.modules.get('matplotlib.pyplot')
        for number in pyplot.get_fignums() if pyplot else []:
            figure = pyplot.figure(number)
            if id(figure) not in saved:
                name = outputs('figure')
                figure.savefig(name, bbox_inches='tight')
                print('[figure saved: %s]' % os.path.relpath(name, WORKSPACE))
            pyplot.close(number)
        saved.clear()

    count = 0
    spare = os.open('/dev/null', os.O_RDONLY)  # code may hold every other descriptor there is
    with open(requests) as lines:
        for line in lines:
            if line.startswith('{'):
                os.environ.update(json.loads(line))
                continue
            count += 1
            if count == 1:
                begin()
            os.close(spare)
            with open(line.rstrip('\n'), encoding='utf-8', errors='replace') as file:
                source = file.read()
            spare = os.open('/dev/null', os.O_RDONLY)
            find_installed()
            code = guarded(lambda: execute(source, '<step %d>' % count))
            code = guarded(save_figures) or code
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError):
                    pass  # the code closed it
            os.write(news, b'done %d\n' % code)
    os._exit(0)


def become_child():
    """In the forked child, before anything of the caller's runs: what holds for every process but the runner's own."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_DUMPABLE, 1)
    score = os.open('/proc/self/oom_score_adj', os.O_WRONLY)
    os.write(score, b'1000')  # the runner is the last to go
    os.close(score)
    for name, value in settings.get('rlimits', {}).items():
        limit = getattr(resource, name)
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)  # a small machine's own may be lower
        resource.setrlimit(limit, (value, value))
    os.nice(10)  # the runner must get its turn among a hundred busy processes
    os.setsid()
    os.chdir(WORKSPACE)
    os.umask(0o022)
    for number in DEFAULT_IN_CHILDREN:
        _signal.signal(number, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def place_descriptors(placed, inherited):
    """Puts descriptors where they are expected ({target: source}) and closes all others."""
    # Copied out of the way first: a source could sit on the number that another one must take.
    high = [(target, fcntl.fcntl(source, fcntl.F_DUPFD, 900)) for target, source in placed.items()]
    for target, fd in high:
        os.dup2(fd, target, inheritable=target < 3 or inherited)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    kept = sorted(placed)
    for low, up in zip(kept, kept[1:] + [limit]):
        os.closerange(low + 1, up)


def become_session(language, node, requests, news, output):
    """In the forked child: limits, file descriptors, then the language. Never returns."""
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


def private_file(name, data):
    """Writes a new file in PRIVATE and returns its path. Code inside can write there too: whatever it put under the name
    is removed, and the file is created, never opened, so a FIFO or a link there neither blocks nor redirects the write.
    Raises OSError."""
    path = PRIVATE + '/' + name
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600), 'wb') as file:
        file.write(data)
    return path


def become_keeper(news, become):
    """In the forked child: parent of what `become` turns into and of all that it loses. Never returns."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    session = os.fork()
    if session == 0:
        become()
    os.dup2(news, 3, inheritable=False)
    os.closerange(0, 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            os._exit(0)  # the session and its last descendant are gone
        if pid == session:
            os.write(3, b'dead %d\n' % status)


class Session:
    """A keeper with its session; the first of all is its own. Raises OSError when no process is to be had."""

    any_yet = False

    def __init__(self, lane, node):
        requests, self.requests = os.pipe()
        self.news, news = os.pipe()
        self.output, output = os.pipe()
        self.lane = lane
        self.heard = b''
        self.spoke = False  # whether it ever finished a step
        self.late = bytearray()
        self.alone = os.getpid() == 1 and not Session.any_yet
        become = lambda: become_session(lane.language, node, requests, news, output)
        try:
            self.keeper = os.fork()
            if self.keeper == 0:
                try:
                    if self.alone:
                        signal.set_wakeup_fd(-1)
                        become()
                    become_keeper(news, become)
                except BaseException as error:
                    log('%s session: %r' % (lane.language, error))
                finally:
                    os._exit(126)
        except OSError:
            for fd in (self.requests, self.news, self.output):
                os.close(fd)
            raise
        finally:
            for fd in (requests, news, output):
                os.close(fd)
        Session.any_yet = True
        kept.add(self.keeper)
        loop.watch(self.news, self.on_news)
        loop.watch(self.output, self.on_output)

    def ask(self, path):
        try:
            os.write(self.requests, path.encode() + b'\n')
        except OSError:
            pass  # it has just died: the keeper tells

    def on_news(self):
        if self.news is None:
            return
        try:
            data = os.read(self.news, 4096)
        except BlockingIOError:
            return
        if not data:
            loop.forget(self.news)
            self.news = None
            return
        *lines, self.heard = (self.heard + data).split(b'\n')
        for line in lines:
            word, _, number = line.partition(b' ')
            if self.lane.session is self and number.isdigit():
                if word == b'done':
                    self.spoke = True
                    self.lane.step_done({'kind': 'exit', 'code': int(number)})
                elif word == b'dead':
                    self.lane.session_died(int(number))

    def on_output(self, limit=CHUNK):
        try:
            data = os.read(self.output, min(limit, CHUNK))
        except BlockingIOError:
            return 0
        step = self.lane.step if self.lane.session is self else None
        if not data:  # closed, or the last holder has gone
            loop.forget(self.output)
            self.output = None
        elif step:
            step.output.feed(data)
        elif len(self.late) < LATE_BYTES:
            self.late += data[:LATE_BYTES]
        return len(data)

    def drain(self):
        """What was written before the end of the step, and no more: a daemon may go on writing for ever."""
        if self.output is None:
            return
        left = struct.unpack('i', fcntl.ioctl(self.output, 0x541B, b'\0' * 4))[0]
        while left > 0:
            got = self.on_output(left)
            if not got:
                return
            left -= got

    def leave(self):
        """The session is dead; its daemons may live on, and what they print is read and thrown away."""
        os.close(self.requests)


class Step:
    def __init__(self, header, code):
        self.id = header['id']
        self.timeout = header['timeoutMs'] / 1000
        self.code = code
        self.output = Output(self.id, header['outputBytes'])
        self.path = None  # of its code, while it runs
        self.started = 0
        self.restarted = False
        self.full = None

    def finish(self, end):
        self.output.finish()
        duration = int((time.monotonic() - self.started) * 1000) if self.started else 0
        loop.send({'id': self.id, 'op': 'done', 'end': end, 'truncated': self.output.cut > 0,
                   'durationMs': duration, 'sessionRestarted': self.restarted,
                   'full': limits_reached() if self.full is None else self.full})
        try:
            os.unlink(self.path or '')
        except OSError:
            pass


class Lane:
    """The steps of one language, one after the other.

    idle → running (a step is with the session) → idle, by `done` or by the session's death
    running → killing (timeout or cancel: every process below the keeper is killed) → idle, when all are seen to be gone
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
            step.output.feed(('%s is not available in this sandbox.\n' % NAMES[self.language]).encode())
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
        loop.at(('timeout', step.id), step.started + step.timeout, lambda: self.kill({'kind': 'timeout', 'afterMs': int(step.timeout * 1000)}))
        self.session.ask(step.path)

    def prepare(self):
        """Starts the session before it is asked for. Until then it takes what comes into the environment."""
        try:
            self.session = Session(self, None)
        except OSError:
            pass  # it is tried again when there is a step

    def environment(self, variables):
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
        if os.WIFSIGNALED(status):
            end = {'kind': 'signal', 'signal': signal_name(os.WTERMSIG(status))}
        else:
            end = {'kind': 'exit', 'code': os.WEXITSTATUS(status)}
        session.drain()
        if not session.spoke and end.get('code') in (126, 127) and self.step:
            self.step.output.feed(('%s is not available in this sandbox.\n' % NAMES[self.language]).encode())
        self.session = None
        session.leave()
        self.step_done(end)

    def kill(self, end):
        """Ends the running step with everything below the keeper; the session's state is lost."""
        if not self.step or self.dying:
            return
        loop.timers.pop(('timeout', self.step.id), None)
        self.step.full = limits_reached()
        self.dying = (kill_tree(self.session.keeper, self.session.alone), end, time.monotonic() + 2)
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


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return 'SIG%d' % number


def find_node():
    for path in (NODE_FALLBACK, '/usr/local/bin/node', '/usr/bin/node'):
        if os.access(path, os.X_OK):
            return path
    return None


lanes = {language: Lane(language) for language in NAMES}
kept = set()  # children of the runner that it forked itself and has not seen the end of
settings = {}

# ---------------------------------------------------------------- streams with the outside


class Stream:
    """Bytes both ways between the wire and two descriptors: a process's pipes, or the two hands of a connection.

    Outward never more than WINDOW chunks ahead of the acknowledgements; inward a chunk is acknowledged once it is written
    whole. Each direction ends by itself (`fin` and `commit` on the wire); `over` is called when both have.
    """

    def __init__(self, key, source, sink, over):
        self.key = key  # (id of the request, number of the connection)
        self.source, self.sink = source, sink
        self.over = over
        self.window = WINDOW
        self.inbox = collections.deque()
        self.last_words = False
        for fd in (source, sink):
            os.set_blocking(fd, False)
        streams[key] = self
        self.arm()

    def say(self, op, payload=b''):
        loop.send({'id': self.key[0], 'op': op, 'conn': self.key[1]}, payload)

    def arm(self):
        if self.source is not None:
            loop.want(self.source, self.on_readable if self.window > 0 else None)
        if self.sink is not None:
            loop.want(self.sink, None, self.on_writable if self.inbox else None)

    def on_readable(self):
        try:
            data = os.read(self.source, STREAM_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b''
        if data:
            self.window -= 1
            self.say('chunk', data)
            self.arm()
        else:
            self.say('fin')
            fd, self.source = self.source, None
            self.left(fd)

    def acknowledged(self):
        self.window += 1
        self.arm()

    def feed(self, data):
        if self.sink is None:
            return self.say('ack')  # nobody reads any more
        self.inbox.append(memoryview(data))
        self.on_writable()

    def finish(self):
        self.last_words = True
        self.on_writable()

    def on_writable(self):
        if self.sink is None:
            return
        try:
            while self.inbox:
                sent = os.write(self.sink, self.inbox[0])
                self.inbox[0] = self.inbox[0][sent:]
                if not self.inbox[0]:
                    self.inbox.popleft()
                    self.say('ack')
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more
            for _ in self.inbox:
                self.say('ack')
            self.inbox.clear()
            self.last_words = True
        if self.inbox or not self.last_words:
            return self.arm()
        libc.shutdown(self.sink, socket.SHUT_WR)  # of a connection whose other hand still reads; nothing to a pipe
        fd, self.sink = self.sink, None
        self.left(fd)

    def left(self, fd):
        loop.want(fd)
        os.close(fd)
        if self.source is None and self.sink is None:
            streams.pop(self.key, None)
            self.over()

    def close(self):
        """Ends both directions at once; `over` is not called."""
        for fd in (self.source, self.sink):
            if fd is not None:
                loop.want(fd)
                os.close(fd)
        self.source = self.sink = None
        self.inbox.clear()
        streams.pop(self.key, None)


class Process:
    """A program that lives beside the steps, spoken to over two pipes; it ends with every process below it."""

    def __init__(self, header):
        self.id = header['id']
        self.end = None
        self.stderr_left = STDERR_BYTES
        self.heard = b''
        theirs, ours = zip(os.pipe(), os.pipe()[::-1], os.pipe()[::-1], os.pipe()[::-1])
        try:
            self.keeper = os.fork()
            if self.keeper == 0:
                try:
                    become_keeper(theirs[3], lambda: become_program(header, *theirs[:3]))
                except BaseException as error:
                    log('%s: %r' % (header['argv'][0], error))
                finally:
                    os._exit(126)
        except OSError as error:
            for fd in ours:
                os.close(fd)
            raise Failure('unavailable', 'The program could not be started: %s.' % error.strerror)
        finally:
            for fd in theirs:
                os.close(fd)
        to_program, from_program, self.stderr, self.news = ours
        processes[self.id] = self
        kept.add(self.keeper)
        self.stream = Stream((self.id, 0), from_program, to_program, self.finish)
        loop.watch(self.stderr, self.on_stderr)
        loop.watch(self.news, self.on_news)

    def on_stderr(self):
        try:
            data = os.read(self.stderr, CHUNK)
        except BlockingIOError:
            return
        if not data:
            loop.forget(self.stderr)
            self.stderr = None
            return
        if self.stderr_left > 0:
            loop.send({'id': self.id, 'op': 'err'}, data[: self.stderr_left])
            self.stderr_left -= len(data)

    def on_news(self):
        try:
            data = os.read(self.news, 4096)
        except BlockingIOError:
            return
        if not data:
            loop.forget(self.news)
            self.news = None
            return
        self.heard += data
        word, _, number = self.heard.partition(b' ')
        if word == b'dead' and number.endswith(b'\n'):
            status = int(number)
            if os.WIFSIGNALED(status):
                self.died({'kind': 'signal', 'signal': signal_name(os.WTERMSIG(status))})
            else:
                self.died({'kind': 'exit', 'code': os.WEXITSTATUS(status)})

    def died(self, end):
        """What it had written is still read to its end; what it left behind ends with it."""
        if self.end:
            return
        self.end = end
        kill_tree(self.keeper)
        self.stream.last_words = True
        self.stream.inbox.clear()
        self.stream.on_writable()
        self.finish()

    def keeper_gone(self):
        if self.news is not None:
            self.on_news()  # what the keeper said before it went
        self.died({'kind': 'signal', 'signal': 'SIGKILL'})

    def kill(self):
        if not self.end:
            self.died({'kind': 'cancelled'})

    def finish(self):
        if not self.end or self.stream.source is not None or self.id not in processes:
            return
        del processes[self.id]
        self.stream.close()
        for fd in (self.stderr, self.news):
            if fd is not None:
                loop.forget(fd)
        loop.send({'id': self.id, 'op': 'done', 'end': self.end})


def become_program(header, stdin, stdout, stderr):
    """In the forked child: the program of a `spawn`. Never returns."""
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


class Listener:
    """A port on the loopback of in here whose connections are made with the outside."""

    def __init__(self, header):
        self.id = header['id']
        self.count = 0
        self.open = set()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(('127.0.0.1', header['port']))
            self.socket.listen(CONNECTIONS)
        except OSError as error:
            self.socket.close()
            raise Failure('unavailable', 'Port %d of the sandbox can not be had: %s.' % (header['port'], error.strerror))
        listeners[self.id] = self
        self.socket.setblocking(False)
        loop.want(self.socket.fileno(), self.on_connection)
        loop.send({'id': self.id, 'op': 'listening'})

    def on_connection(self):
        try:
            connection, _ = self.socket.accept()
        except OSError:
            return
        if len(self.open) >= CONNECTIONS:
            return connection.close()
        self.count += 1
        number = self.count
        self.open.add(number)
        loop.send({'id': self.id, 'op': 'accept', 'conn': number})
        source = connection.detach()
        Stream((self.id, number), source, os.dup(source), lambda: self.open.discard(number))

    def close(self):
        loop.want(self.socket.fileno())
        self.socket.close()
        for number in self.open:
            stream = streams.get((self.id, number))
            if stream:
                stream.close()
        del listeners[self.id]


streams, processes, listeners = {}, {}, {}


def speak(header, payload):
    """A word to a stream: a process's has number 0, a connection's the number it was accepted under."""
    op, key = header['op'], header['id']
    stream = streams.get((key, header.get('conn', 0)))
    if op == 'kill' and key in processes:
        processes[key].kill()
    elif op == 'abort' and key in listeners and 'conn' not in header:
        listeners[key].close()
        loop.send({'id': key, 'op': 'done'})
    elif not stream:
        pass  # a late word to one that is over
    elif op == 'chunk':
        stream.feed(payload)
    elif op == 'ack':
        stream.acknowledged()
    elif op == 'commit':
        stream.finish()
    elif op == 'abort':
        if key in listeners:
            listeners[key].open.discard(header['conn'])
            stream.close()


# ---------------------------------------------------------------- files

NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Path:
    """A path of a request, taken apart. Below /workspace and /tmp no component may be a symbolic link."""

    def __init__(self, text, writing):
        self.text = text
        try:
            raw = os.fsencode(text)
        except UnicodeEncodeError:
            raise Failure('invalid_path', 'The path is not valid Unicode.')
        parts = [part for part in raw.split(b'/') if part not in (b'', b'.')]
        if not raw or b'\0' in raw or b'..' in parts:
            raise Failure('invalid_path', '%r is not a path: it must not be empty or hold ".." or NUL.' % text)
        if len(raw) > PATH_BYTES or any(len(part) > 255 for part in parts):
            raise Failure('invalid_path', 'The path is too long: %d bytes in all, 255 a component.' % PATH_BYTES)
        if not raw.startswith(b'/'):
            parts.insert(0, b'workspace')
        self.parts = parts
        self.own = parts[:1] in ([b'workspace'], [b'tmp'])
        if writing and not self.own:
            raise Failure('denied', '%s: files can be written below /workspace and /tmp only.' % text)
        if writing and len(parts) < 2:
            raise Failure('not_a_file', '%s is a directory.' % text)
        if parts[:1] in ([b'proc'], [b'sys'], [b'dev'], [b'run']):
            raise Failure('denied', '%s: not a place to read files from.' % text)

    def directory(self, parts, create=False):
        """A descriptor of the directory; the caller closes it."""
        if not self.own:  # a read-only tree of the host's making: its own links may be followed
            return self.checked(lambda: os.open(b'/' + b'/'.join(parts), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        fd = os.open('/', os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                below = self.checked(lambda: self.enter(fd, part, create))
                os.close(fd)
                fd = below
            return fd
        except BaseException:
            os.close(fd)
            raise

    def enter(self, fd, part, create):
        try:
            return os.open(part, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
        except FileNotFoundError:
            if not create:
                raise
            os.mkdir(part, 0o755, dir_fd=fd)
            return os.open(part, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                link = stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode)
                what = 'is a symbolic link, which is not followed' if link else 'is not a directory'
                raise Failure('denied' if link else 'not_a_file', '%s: %s %s.' % (self.text, os.fsdecode(part), what))
            raise

    def checked(self, action):
        try:
            return action()
        except OSError as error:
            raise self.failure(error)

    def failure(self, error):
        code, words = {
            errno.ENOENT: ('not_found', 'there is no such file or directory'),
            errno.ENOTDIR: ('not_found', 'there is no such file or directory'),
            errno.ELOOP: ('not_a_file', 'this is a symbolic link, which is not followed'),
            errno.EISDIR: ('not_a_file', 'this is a directory'),
            errno.ENXIO: ('not_a_file', 'this is not a regular file'),
            errno.ENOSPC: ('no_space', 'no space is left'),
            errno.EDQUOT: ('no_space', 'no space is left'),
            errno.ENOMEM: ('no_space', 'no memory is left for the file'),
            errno.EACCES: ('denied', 'permission is denied'),
            errno.EPERM: ('denied', 'permission is denied'),
            errno.EROFS: ('denied', 'this is read-only'),
            errno.ENAMETOOLONG: ('invalid_path', 'the path is too long'),
        }.get(error.errno, ('denied', error.strerror))
        if error.errno == errno.ENOSPC:
            place = '/' + os.fsdecode(self.parts[0])
            for hit in limits_reached():
                if hit.get('place') == place and hit['kind'] == 'files':
                    words = '%s holds %s files, as many as it may' % (place, format(hit['count'], ','))
                elif hit.get('place') == place:
                    words = 'no space is left: %s holds %d MiB' % (place, hit['mebibytes'])
        return Failure(code, '%s: %s.' % (self.text, words))


class Write:
    """begin → chunks, each acknowledged → commit. Nothing is seen under the name before the commit, but for `append`."""

    def __init__(self, header):
        self.id = header['id']
        self.append = header['mode'] == 'append'
        self.path = Path(header['path'], writing=True)
        self.name = self.path.parts[-1]
        self.temporary = b'.errand-%d.tmp' % self.id
        self.folder = self.path.directory(self.path.parts[:-1], create=True)
        self.file = None
        try:
            self.path.checked(self.open)
        except BaseException:
            self.close()
            raise

    def open(self):
        try:
            mode = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and not stat.S_ISREG(mode):
            raise Failure('not_a_file', '%s: not a regular file.' % self.path.text)
        if self.append:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW
            self.file = os.open(self.name, flags, 0o644, dir_fd=self.folder)
            found = os.fstat(self.file)
            if not stat.S_ISREG(found.st_mode):  # swapped since
                raise Failure('not_a_file', '%s: not a regular file.' % self.path.text)
            self.before = found.st_size
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW
            self.file = os.open(self.temporary, flags, 0o644, dir_fd=self.folder)
            if mode is not None:
                os.fchmod(self.file, stat.S_IMODE(mode) & 0o777)

    def chunk(self, data):
        view = memoryview(data)
        while view:
            view = view[self.path.checked(lambda: os.write(self.file, view)) :]

    def commit(self):
        if not self.append:
            self.path.checked(lambda: os.rename(self.temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder))
        self.close()

    def abort(self):
        if self.file is not None:
            if self.append:
                os.ftruncate(self.file, self.before)
            else:
                try:
                    os.unlink(self.temporary, dir_fd=self.folder)
                except OSError:
                    pass
        self.close()

    def close(self):
        if self.file is not None:
            os.close(self.file)
        os.close(self.folder)


class Read:
    """Sends a regular file in chunks, never more than WINDOW ahead of the acknowledgements."""

    def __init__(self, header):
        self.id = header['id']
        self.left = self.max = header['maxBytes']
        self.path = Path(header['path'], writing=False)
        self.file = None
        folder = self.path.directory(self.path.parts[:-1]) if self.path.parts else None
        if folder is None:
            raise Failure('not_a_file', '/ is a directory.')
        try:
            flags = os.O_RDONLY | (NO_FOLLOW if self.path.own else NO_FOLLOW & ~os.O_NOFOLLOW)
            self.file = self.path.checked(lambda: os.open(self.path.parts[-1], flags, dir_fd=folder))
        finally:
            os.close(folder)
        found = os.fstat(self.file)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise Failure('not_a_file', '%s: not a regular file.' % self.path.text)
        if found.st_size > self.max:
            self.close()
            raise self.too_large()

    def too_large(self):
        return Failure('too_large', '%s is larger than %s bytes.' % (self.path.text, format(self.max, ',')))

    def send_next(self):
        """True while there is more."""
        data = self.path.checked(lambda: os.read(self.file, CHUNK))
        self.left -= len(data)
        if self.left < 0:
            raise self.too_large()
        if data:
            loop.send({'id': self.id, 'op': 'chunk'}, data)
        else:
            loop.send({'id': self.id, 'op': 'done'})
        return bool(data)

    def close(self):
        os.close(self.file)

    abort = close


def list_entries(header):
    """Sends the entries in pieces, sorted, and with `done` whether there are more than `maxEntries` or LIST_BYTES allow."""
    path = Path(header['path'], writing=False)
    found = []  # (path, the entry as JSON)
    left, room, more = header['maxEntries'], LIST_BYTES, False

    def take(entry):
        nonlocal left, room, more
        data = json.dumps(entry, ensure_ascii=False).encode()
        left -= 1
        room -= len(data) + 1
        more = left < 0 or room < 0
        if not more:
            found.append((entry['path'], data))

    def enter(fd, name, entry, depth):
        """A descriptor of the directory; None, and why in the entry, where it can not be listed."""
        if depth >= LIST_DEPTH:
            entry['problem'] = 'it lies more than %d directories deep' % LIST_DEPTH
        elif len(entry['path'].encode()) > PATH_BYTES:
            entry['problem'] = 'its path is longer than %d bytes' % PATH_BYTES
        else:
            try:
                return os.open(name, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
            except FileNotFoundError:
                pass
            except OSError as error:  # swapped for a link, or closed to us
                entry['problem'] = 'it can not be opened (%s)' % error.strerror.lower()

    def visit(fd, prefix, depth):
        try:
            with os.scandir(fd) as entries:
                names = sorted(entry.name for entry in entries)
            for name in names:
                if more:
                    return
                try:
                    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                clean = name.encode('utf-8', 'replace').decode()
                kind = 'directory' if stat.S_ISDIR(info.st_mode) else 'file' if stat.S_ISREG(info.st_mode) else 'other'
                entry = {'path': prefix + clean, 'type': kind, 'size': info.st_size if kind == 'file' else 0}
                below = None
                if clean != name:
                    entry.update(type='other', problem='its name is not UTF-8, so it can not be asked for')
                elif kind == 'directory' and header['recursive']:
                    below = enter(fd, name, entry, depth)
                take(entry)
                if below is not None:
                    visit(below, prefix + clean + '/', depth + 1)
        finally:
            os.close(fd)

    fd = path.directory(path.parts)
    path.checked(lambda: visit(fd, '', 0))
    piece = bytearray()
    for _, data in sorted(found):
        if len(piece) + len(data) >= CHUNK:
            loop.send({'id': header['id'], 'op': 'entries'}, piece[1:])
            piece.clear()
        piece += b',' + data
    if piece:
        loop.send({'id': header['id'], 'op': 'entries'}, piece[1:])
    loop.send({'id': header['id'], 'op': 'done', 'more': more})


# ---------------------------------------------------------------- requests

transfers = {}


def on_frame(header, payload):
    loop.timers.pop('spare', None)
    try:
        handle(header, payload)
    except Failure as failure:
        transfer = transfers.pop(header['id'], None)
        if transfer:
            transfer.abort()
        message = str(failure)[:MESSAGE_CHARS]  # it may quote what was asked for, of any length
        loop.send({'id': header['id'], 'op': 'error', 'code': failure.code, 'message': message})


def handle(header, payload):
    op, key = header['op'], header['id']
    transfer = transfers.get(key)
    if op == 'spawn':
        Process(header)
    elif op == 'listen':
        Listener(header)
    elif key in processes or key in listeners:
        speak(header, payload)
    elif op == 'exec':
        lanes[header['language']].add(Step(header, payload))
    elif op == 'kill':
        for lane in lanes.values():
            lane.cancel(key)
    elif op == 'write':
        transfers[key] = Write(header)
    elif op == 'read':
        transfers[key] = Read(header)
        for _ in range(WINDOW):
            if not advance(key):
                break
    elif op == 'list':
        list_entries(header)
    elif op == 'env':
        os.environ.update(header['variables'])  # what is forked from now on has them
        lanes['python'].environment(header['variables'])
        loop.send({'id': key, 'op': 'done'})
    elif op == 'lease':
        loop.at('deadline', time.monotonic() + header['ms'] / 1000, lambda: os._exit(0))
    elif not transfer:
        pass  # a late word to a transfer that has failed
    elif op == 'chunk':
        transfer.chunk(payload)
        loop.send({'id': key, 'op': 'ack'})
    elif op == 'ack':
        advance(key)
    elif op == 'commit':
        del transfers[key]
        try:
            transfer.commit()
        except Failure:
            transfer.abort()
            raise
        loop.send({'id': key, 'op': 'done'})
    elif op == 'abort':
        transfers.pop(key).abort()
        loop.send({'id': key, 'op': 'done'})


def advance(key):
    reader = transfers[key]
    more = reader.send_next()
    if not more:
        transfers.pop(key).close()
    return more


def load_site():
    """Python is started without site-packages (-S), to be sooner there; the code may have them. Once a process."""
    import site
    import warnings

    if not hasattr(site, 'loaded'):
        site.main()
        warnings.filterwarnings('ignore', message='.*non-interactive.*')  # plt.show(): the session saves the figure
        site.loaded = True


def preload():
    """What a Python session needs, taken in while nobody waits."""
    import ast
    import functools
    import importlib.util
    import io
    import linecache
    import site
    import traceback
    import types
    import warnings


def main(given):
    prctl(PR_SET_DUMPABLE, 0)
    settings.update(given)
    loop.open()
    wake, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # The one that Python handles, and that code inside could thus send us: the kernel drops all others to a first process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def on_child():
        try:
            os.read(wake, 4096)
        except BlockingIOError:
            pass
        reap()

    loop.watch(wake, on_child)
    os.umask(0o022)  # whatever the host's is
    os.makedirs(WORKSPACE + '/outputs', exist_ok=True)
    loop.idle.append(preload)
    loop.at('spare', time.monotonic() + SPARE_AFTER, lanes['python'].prepare)
    loop.send({'id': 0, 'op': 'ready', 'python': sys.version.split()[0]})
    loop.run(on_frame)


if __name__ == '__main__':
    main(json.loads(sys.argv[1]))
