"""A runner under the control of hostile code: it speaks frames, and breaks the protocol as the request asks for."""

import json
import os
import struct
import sys


def take(count):
    data = b''
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            sys.exit()
        data += more
    return data


def send(header, payload=b''):
    head = json.dumps(header).encode()
    data = struct.pack('>II', len(head), len(payload)) + head + payload
    while data:
        data = data[os.write(1, data) :]


def for_ever(header, payload):
    while True:
        send(header, payload)


END = {'kind': 'exit', 'code': 0}
STATE = {'id': 'job', 'language': 'bash', 'ms': 1, 'bytes': 3, 'saved': {'bytes': 3, 'cut': False}}
JOB = {'op': 'done', 'job': STATE, 'from': 0, 'to': 3}
BREACHES = {
    'done without an end': lambda key: send({'id': key, 'op': 'done'}),
    'done with an end of its own': lambda key: send({'id': key, 'op': 'done', 'end': {'kind': 'memory_limit'}}),
    'done with hits of its own': lambda key: send({'id': key, 'op': 'done', 'end': END, 'full': [{'kind': {}}]}),
    'done with a file of its own': lambda key: send({'id': key, 'op': 'done', 'end': END, 'saved': {'bytes': 2**40, 'cut': False}}),
    'done with a job of another name': lambda key: send({**JOB, 'id': key, 'job': {**STATE, 'id': 'other'}}),
    'done with a range that ends before it starts': lambda key: send({**JOB, 'id': key, 'from': 5}),
    'done with a job without a file': lambda key: send({**JOB, 'id': key, 'job': {**STATE, 'saved': None}}),
    'done with a refusal of its own': lambda key: send({'id': key, 'op': 'done', 'refused': 'x' * 100_000}),
    'no object': lambda key: send(None),
    'no JSON': lambda key: os.write(1, struct.pack('>II', 1, 0) + b'{'),
    'a frame of 60 MB': lambda key: send({'id': key, 'op': 'out'}, b'x' * 60_000_000),
    'output for ever': lambda key: for_ever({'id': key, 'op': 'out'}, b'x' * 1000),
    'empty output for ever': lambda key: for_ever({'id': key, 'op': 'out'}, b''),
    'live output for ever': lambda key: for_ever({'id': key, 'op': 'live'}, b'x' * 1000),
    'a chunk without a read': lambda key: send({'id': key, 'op': 'chunk'}, b'x'),
    'an error of its own': lambda key: send({'id': key, 'op': 'error', 'code': 'stale', 'message': 'x'}),
}

send({'id': 0, 'op': 'ready', 'python': '3'})
while True:
    heads, bodies = struct.unpack('>II', take(8))
    header = json.loads(take(heads))
    payload = take(bodies)
    if header['op'] == 'job' and 'job' not in header:
        send({'id': header['id'], 'op': 'done', 'jobs': [STATE] * 1000})
    elif header['op'] in ('exec', 'job'):
        BREACHES[payload.decode()](header['id'])
    elif header['op'] == 'list':
        for_ever({'id': header['id'], 'op': 'entries'}, b'{"path": "x", "type": "file", "size": 0}')
    elif header['op'] == 'read':
        for_ever({'id': header['id'], 'op': 'chunk'}, b'x' * 1000)
    elif header['op'] == 'listen':
        send({'id': header['id'], 'op': 'listening'})
        for conn in range(1, 100_000):
            send({'id': header['id'], 'op': 'accept', 'conn': conn})
