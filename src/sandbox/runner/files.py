"""Writing and reading files for the host, in chunks."""

import os
import stat

from .paths import Path
from .system import NO_FOLLOW
from .wire import CHUNK, Failure, loop


class FileWrite:
    """Begins, takes chunks, and commits. Nothing is visible under the name before the commit, except with `append`."""

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
            raise not_regular(self.path)
        if self.append:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW
            self.file = os.open(self.name, flags, 0o644, dir_fd=self.folder)
            found = os.fstat(self.file)
            if not stat.S_ISREG(found.st_mode):  # replaced since the check above
                raise not_regular(self.path)
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


class FileRead:
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
            raise not_regular(self.path)
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


def not_regular(path):
    return Failure('not_a_file', '%s: not a regular file.' % path.text)
