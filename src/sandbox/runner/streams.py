"""Streams of bytes between the host and descriptors in the sandbox."""

import collections
import os
import socket

from .system import libc
from .wire import WINDOW, loop

STREAM_CHUNK = 64 * 1024

streams = {}  # by (id of the request, number of the connection)


class Stream:
    """Bytes both ways between the host and two descriptors: a program's pipes, or the two directions of a connection.

    Outward it is never more than WINDOW chunks ahead of the acknowledgements. Inward a chunk is acknowledged once it is
    written whole. Each direction ends by itself (`fin` and `commit` on the wire); `over` is called when both have ended.
    """

    def __init__(self, key, source, sink, over):
        self.key = key
        self.source, self.sink = source, sink
        self.over = over
        self.window = WINDOW
        self.inbox = collections.deque()
        self.complete = False  # whether the host has sent all
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
            self.close_one(fd)

    def acknowledged(self):
        self.window += 1
        self.arm()

    def feed(self, data):
        if self.sink is None:
            return self.say('ack')  # its reader is gone
        self.inbox.append(memoryview(data))
        self.on_writable()

    def finish(self):
        self.complete = True
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
        except OSError:  # its reader is gone
            for _ in self.inbox:
                self.say('ack')
            self.inbox.clear()
            self.complete = True
        if self.inbox or not self.complete:
            return self.arm()
        libc.shutdown(self.sink, socket.SHUT_WR)  # for a connection whose other direction is open; no effect on a pipe
        fd, self.sink = self.sink, None
        self.close_one(fd)

    def close_one(self, fd):
        loop.want(fd)
        os.close(fd)
        if self.source is None and self.sink is None:
            streams.pop(self.key, None)
            self.over()

    def close(self):
        """Ends both directions at once, without calling `over`."""
        for fd in (self.source, self.sink):
            if fd is not None:
                loop.want(fd)
                os.close(fd)
        self.source = self.sink = None
        self.inbox.clear()
        streams.pop(self.key, None)
