"""
Clients that never read: never_reads.py PORT. Each line of stdin is `{"count": n, "request": "…"}`. It closes the open
connections, opens n new ones that send this request, and prints their local ports. The program ends with stdin. Receive
buffers are small, so that the kernel buffers little for each connection.
"""

import json
import socket
import sys


def connect(port: int, request: bytes) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    connection.setblocking(False)
    try:
        connection.send(request)
    except (BlockingIOError, ConnectionError):
        pass
    return connection


connections: list[socket.socket] = []
for line in sys.stdin:
    for connection in connections:
        connection.close()
    asked = json.loads(line)
    connections = [connect(int(sys.argv[1]), asked["request"].encode()) for _ in range(asked["count"])]
    print(*(connection.getsockname()[1] for connection in connections), flush=True)
