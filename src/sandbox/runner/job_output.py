"""The output of a job: a file with its beginning, and in memory the end of what the file does not have."""

import os
import time

from .output import MARK_BYTES
from .result_file import ResultFile
from .terminal import Screen

REST = 64 * 1024  # bytes of the end that are kept in memory


class JobOutput:
    def __init__(self, path, most):
        self.file = ResultFile(path, most, 0)
        self.total = 0  # bytes that it printed
        self.taken = 0  # of these, the host has got
        self.last = 0  # when it printed last
        self.rest = bytearray()  # the end of what is not in the file

    def add(self, data):
        before = self.file.bytes
        self.file.add(data)
        self.rest += data[self.file.bytes - before :]
        if len(self.rest) > 2 * REST:
            del self.rest[: len(self.rest) - REST]
        self.total += len(data)
        self.last = time.monotonic()

    def saved(self):
        return {'bytes': self.file.bytes, 'cut': self.total > self.file.bytes}

    def take(self, over):
        """The range of what is new: whole characters, unless the job is over."""
        start, end = self.taken, self.total
        if not over:
            end -= unfinished(self.read(max(start, end - 3), end))
        self.taken = end
        return start, end

    def text(self, start, end, cap):
        """What a terminal shows of that range: all of it, or beginning and end."""
        if end - start <= cap:
            shown = render(self.read(start, end))
            if len(shown) <= cap:
                return shown
        half = (cap - MARK_BYTES) // 2
        mark = '\n[… %s bytes of output cut here …]\n' % format(max(0, end - start - 2 * half), ',')
        head, tail = render(self.read(start, start + half))[:half], render(self.read(end - half, end))[-half:]
        return clean(head) + mark.encode() + clean(tail)

    def read(self, start, end):
        """Bytes that are gone are left out: between the file and the end in memory, or because code has changed the file."""
        data = self.file.read(start, min(end, self.file.bytes))
        first = self.total - len(self.rest)  # position of the first byte in memory
        return data + bytes(self.rest[max(0, start - first) : max(0, end - first)])

    def close(self):
        self.file.close()


def unfinished(data):
    """Number of bytes at the end that begin a character without ending it."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            size = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return back if size > back else 0
    return 0


def render(data):
    screen = Screen()
    rows = screen.write(data.decode('utf-8', 'replace')) + screen.finish()
    return ''.join(row.text for row in rows).encode('utf-8', 'replace')


def clean(data):
    """Without the halves of characters at both ends."""
    return data.decode('utf-8', 'ignore').encode()
