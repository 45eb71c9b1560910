"""Listing directories."""

import json
import os
import stat

from .paths import PATH_BYTES, Path
from .system import NO_FOLLOW
from .wire import CHUNK, loop

LIST_DEPTH = 100
LIST_BYTES = 4 * 1024 * 1024  # of one listing, as JSON; protocol.ts has the same number


class Listing:
    """Collects the entries below a directory, at most `most` and LIST_BYTES of them."""

    def __init__(self, most, recursive):
        self.recursive = recursive
        self.left, self.room, self.more = most, LIST_BYTES, False
        self.found = []  # (path, the entry as JSON)

    def take(self, entry):
        data = json.dumps(entry, ensure_ascii=False).encode()
        self.left -= 1
        self.room -= len(data) + 1
        self.more = self.left < 0 or self.room < 0
        if not self.more:
            self.found.append((entry['path'], data))

    def visit(self, fd, prefix='', depth=0):
        """Takes the entries of a directory and closes its descriptor."""
        try:
            with os.scandir(fd) as entries:
                names = sorted(entry.name for entry in entries)
            for name in names:
                if self.more:
                    return
                try:
                    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                self.visit_entry(fd, name, info, prefix, depth)
        finally:
            os.close(fd)

    def visit_entry(self, fd, name, info, prefix, depth):
        clean = name.encode('utf-8', 'replace').decode()
        kind = 'directory' if stat.S_ISDIR(info.st_mode) else 'file' if stat.S_ISREG(info.st_mode) else 'other'
        entry = {'path': prefix + clean, 'type': kind, 'size': info.st_size if kind == 'file' else 0}
        below = None
        if clean != name:
            entry.update(type='other', problem='its name is not UTF-8, so it can not be requested')
        elif kind == 'directory' and self.recursive:
            below = self.enter(fd, name, entry, depth)
        self.take(entry)
        if below is not None:
            self.visit(below, prefix + clean + '/', depth + 1)

    def enter(self, fd, name, entry, depth):
        """A descriptor of the directory. None if it can not be listed; then the entry says why."""
        if depth >= LIST_DEPTH:
            entry['problem'] = 'it lies more than %d directories deep' % LIST_DEPTH
        elif len(entry['path'].encode()) > PATH_BYTES:
            entry['problem'] = 'its path is longer than %d bytes' % PATH_BYTES
        else:
            try:
                return os.open(name, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
            except FileNotFoundError:
                pass
            except OSError as error:  # replaced by a link, or not readable
                entry['problem'] = 'it can not be opened (%s)' % error.strerror.lower()


def list_entries(header):
    """Sends the entries in pieces, sorted by path; `done` says whether there are more."""
    path = Path(header['path'], writing=False)
    listing = Listing(header['maxEntries'], header['recursive'])
    fd = path.directory(path.parts)
    path.checked(lambda: listing.visit(fd))
    piece = bytearray()
    for _, data in sorted(listing.found):
        if len(piece) + len(data) >= CHUNK:
            loop.send({'id': header['id'], 'op': 'entries'}, piece[1:])
            piece.clear()
        piece += b',' + data
    if piece:
        loop.send({'id': header['id'], 'op': 'entries'}, piece[1:])
    loop.send({'id': header['id'], 'op': 'done', 'more': listing.more})
