"""Ports on the sandbox's loopback whose connections are handed to the host, such as the proxy's."""

import os
import socket

from .streams import Stream, streams
from .wire import Failure, loop

CONNECTIONS = 256  # open at once on one listener; protocol.ts has the same number

listeners = {}


class Listener:
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
            message = 'Port %d of the sandbox is not available: %s.' % (header['port'], error.strerror)
            raise Failure('unavailable', message)
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
