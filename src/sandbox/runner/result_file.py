"""The file with the whole of a long output, of which the model gets beginning and end."""

import os

from .paths import Path
from .system import NO_FOLLOW
from .wire import Failure

LONG = 16 * 1024  # bytes from which an output is long; long-result.ts has the same number


class ResultFile:
    """Takes an output piece by piece. The file is made when the output is long; until then its beginning is in memory.

    It takes at most `most` bytes, and at most half of the free space of its file system.
    """

    def __init__(self, path, most, long=LONG):
        self.path, self.most, self.long = path, most, long
        self.beginning = bytearray()
        self.file = None
        self.bytes = 0  # in the file
        self.cut = False  # whether the output has more than the file
        self.failed = False  # there is no file, and there will be none

    def add(self, data):
        if self.failed or self.cut:
            return
        if self.file is None:
            self.beginning += data
            if len(self.beginning) <= self.long:
                return
            data = self.open()
        room = self.most - self.bytes
        self.cut = len(data) > room
        self.write(memoryview(data)[:room])

    def open(self):
        """Makes the file. Returns the beginning of the output, which is written next."""
        beginning, self.beginning = self.beginning, b''
        try:
            path = Path(self.path, writing=True)
            folder = path.directory(path.parts[:-1], create=True)
            try:
                room = os.fstatvfs(folder)
                self.most = min(self.most, room.f_bavail * room.f_frsize // 2)
                flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | NO_FOLLOW  # code can make links and FIFOs there
                self.file = os.open(path.parts[-1], flags, 0o644, dir_fd=folder)
            finally:
                os.close(folder)
        except (OSError, Failure):
            self.failed = True
            return b''
        return beginning

    def write(self, data):
        try:
            while data and self.file is not None:
                sent = os.write(self.file, data)
                self.bytes += sent
                data = data[sent:]
        except OSError:  # the space is used up
            self.cut = True

    def read(self, start, end):
        try:
            return os.pread(self.file, end - start, start) if self.file is not None and end > start else b''
        except OSError:
            return b''

    def close(self):
        """Returns what the file has, or None if there is none."""
        if self.file is None:
            return None
        os.close(self.file)
        self.file = None
        return {'bytes': self.bytes, 'cut': self.cut}
