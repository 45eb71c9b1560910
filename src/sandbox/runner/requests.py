"""Answers the host's requests, which protocol.ts describes."""

import os
import time

from .files import FileRead, FileWrite
from .jobs import leave_look, looks, on_job_request
from .listeners import Listener, listeners
from .listing import list_entries
from .programs import Program, programs
from .steps import Step, lanes
from .streams import streams
from .wire import WINDOW, Failure, loop

MESSAGE_CHARS = 8192  # of an error

transfers = {}  # file reads and writes by the id of their request


def on_frame(header, payload):
    loop.timers.pop('spare', None)
    try:
        handle(header, payload)
    except Failure as failure:
        transfer = transfers.pop(header['id'], None)
        if transfer:
            transfer.abort()
        message = str(failure)[:MESSAGE_CHARS]  # it may quote text of any length from the request
        loop.send({'id': header['id'], 'op': 'error', 'code': failure.code, 'message': message})


def handle(header, payload):
    op, key = header['op'], header['id']
    if op == 'spawn':
        Program(header)
    elif op == 'listen':
        Listener(header)
    elif key in programs or key in listeners:
        handle_stream(header, payload)
    elif op == 'exec':
        lanes[header['language']].add(Step(header, payload))
    elif op == 'job':
        on_job_request(header, payload)
    elif key in looks:
        leave_look(key)
    elif op == 'kill':
        for lane in lanes.values():
            lane.cancel(key)
    elif op == 'write':
        transfers[key] = FileWrite(header)
    elif op == 'read':
        begin_read(key, header)
    elif op == 'list':
        list_entries(header)
    elif op == 'env':
        set_environment(key, header['variables'])
    elif op == 'lease':
        loop.at('deadline', time.monotonic() + header['ms'] / 1000, lambda: os._exit(0))
    elif key in transfers:
        handle_transfer(op, key, payload)
    # Anything else is late: its request has failed.


def set_environment(key, variables):
    os.environ.update(variables)  # for all that is forked from now on
    lanes['python'].set_environment(variables)
    loop.send({'id': key, 'op': 'done'})


def handle_transfer(op, key, payload):
    transfer = transfers[key]
    if op == 'chunk':
        transfer.chunk(payload)
        loop.send({'id': key, 'op': 'ack'})
    elif op == 'ack':
        send_next(key)
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


def begin_read(key, header):
    transfers[key] = FileRead(header)
    for _ in range(WINDOW):
        if not send_next(key):
            break


def send_next(key):
    reader = transfers[key]
    more = reader.send_next()
    if not more:
        transfers.pop(key).close()
    return more


def handle_stream(header, payload):
    """A program's stream has number 0, a connection's the number that `accept` gave it."""
    op, key = header['op'], header['id']
    stream = streams.get((key, header.get('conn', 0)))
    if op == 'kill' and key in programs:
        programs[key].kill()
    elif op == 'abort' and key in listeners and 'conn' not in header:
        listeners[key].close()
        loop.send({'id': key, 'op': 'done'})
    elif not stream:
        pass  # late: it is over
    elif op == 'chunk':
        stream.feed(payload)
    elif op == 'ack':
        stream.acknowledged()
    elif op == 'commit':
        stream.finish()
    elif op == 'abort' and key in listeners:
        listeners[key].open.discard(header['conn'])
        stream.close()
