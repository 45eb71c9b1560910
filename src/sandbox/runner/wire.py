"""The event loop and the connection to the host: frames on stdin and stdout, as frames.ts describes them."""

import json
import os
import select
import struct
import time

CHUNK = 256 * 1024
WINDOW = 4  # chunks in flight before the receiver must acknowledge one


class Failure(Exception):
    """A request that cannot be met: a SandboxErrorCode of port.ts and a sentence."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def read_available(fd, size):
    """Up to `size` bytes; None if there are none yet, b'' at the end."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None


class Loop:
    """epoll, timers, and both directions of the connection to the host."""

    def __init__(self):
        self.readers = {}
        self.writers = {}
        self.timers = {}
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.idle = []  # actions that run once, when no event is pending
        self.blocked = False

    def open(self):
        """Must be called in the process that runs the loop: children would share an epoll descriptor."""
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
        """Closes a descriptor that `watch` was given."""
        if self.readers.pop(fd, None):
            self.epoll.unregister(fd)
            os.close(fd)

    def want(self, fd, on_read=None, on_write=None):
        """Sets what a descriptor is watched for. Without handlers it is no longer watched, and stays open."""
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
        """Sets the timer of that name, in seconds of the monotonic clock."""
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
        data = read_available(0, 4 * CHUNK)
        if data is None:
            return
        if not data:
            os._exit(0)  # the host is gone: the sandbox ends
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
            self.run_timers()
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
                    self.handle(fd, event)

    def run_timers(self):
        now = time.monotonic()
        for name in [name for name, (when, _) in self.timers.items() if when <= now]:
            _, action = self.timers.pop(name, (0, None))  # an earlier action may have removed this timer
            if action:
                action()

    def handle(self, fd, event):
        # Looked up twice: the first handler may have removed the second.
        if fd in self.readers and event & ~select.EPOLLOUT:
            self.readers[fd]()
        if fd in self.writers and event & ~select.EPOLLIN:
            self.writers[fd]()


loop = Loop()
