"""Paths that requests name."""

import errno
import os
import stat

from .limits import limits_reached
from .system import NO_FOLLOW
from .wire import Failure

PATH_BYTES = 4000  # the longest path that a request may name
CLOSED = ([b'proc'], [b'sys'], [b'dev'], [b'run'])
FAILURES = {  # errno → code of the failure and the reason
    errno.ENOENT: ('not_found', 'there is no such file or directory'),
    errno.ENOTDIR: ('not_found', 'there is no such file or directory'),
    errno.ELOOP: ('not_a_file', 'this is a symbolic link, which is not followed'),
    errno.EISDIR: ('not_a_file', 'this is a directory'),
    errno.ENXIO: ('not_a_file', 'this is not a regular file'),
    errno.ENOSPC: ('no_space', 'no space is left'),
    errno.EDQUOT: ('no_space', 'no space is left'),
    errno.ENOMEM: ('no_space', 'no memory is left for the file'),
    errno.EACCES: ('denied', 'permission is denied'),
    errno.EPERM: ('denied', 'permission is denied'),
    errno.EROFS: ('denied', 'this is read-only'),
    errno.ENAMETOOLONG: ('invalid_path', 'the path is too long'),
}


class Path:
    """A path of a request, split into components. Below /workspace and /tmp no component may be a symbolic link."""

    def __init__(self, text, writing):
        self.text = text
        try:
            raw = os.fsencode(text)
        except UnicodeEncodeError:
            raise Failure('invalid_path', 'The path is not valid Unicode.')
        parts = [part for part in raw.split(b'/') if part not in (b'', b'.')]
        if not raw or b'\0' in raw or b'..' in parts:
            raise Failure('invalid_path', '%r is not a path: it must not be empty or hold ".." or NUL.' % text)
        if len(raw) > PATH_BYTES or any(len(part) > 255 for part in parts):
            raise Failure('invalid_path', 'The path is too long: %d bytes in all, 255 a component.' % PATH_BYTES)
        if not raw.startswith(b'/'):
            parts.insert(0, b'workspace')
        self.parts = parts
        self.own = parts[:1] in ([b'workspace'], [b'tmp'])
        if writing and not self.own:
            raise Failure('denied', '%s: files can be written below /workspace and /tmp only.' % text)
        if writing and len(parts) < 2:
            raise Failure('not_a_file', '%s is a directory.' % text)
        if parts[:1] in CLOSED:
            raise Failure('denied', '%s: files below /proc, /sys, /dev and /run can not be read.' % text)

    def directory(self, parts, create=False):
        """A descriptor of the directory. The caller must close it."""
        if not self.own:  # of the read-only root, whose own links may be followed
            return self.checked(lambda: os.open(b'/' + b'/'.join(parts), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        fd = os.open('/', os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                below = self.checked(lambda: self.enter(fd, part, create))
                os.close(fd)
                fd = below
            return fd
        except BaseException:
            os.close(fd)
            raise

    def enter(self, fd, part, create):
        try:
            return os.open(part, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
        except FileNotFoundError:
            if not create:
                raise
            os.mkdir(part, 0o755, dir_fd=fd)
            return os.open(part, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                link = stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode)
                what = 'is a symbolic link, which is not followed' if link else 'is not a directory'
                raise Failure('denied' if link else 'not_a_file', '%s: %s %s.' % (self.text, os.fsdecode(part), what))
            raise

    def checked(self, action):
        """Runs an action whose OSError becomes a Failure with a sentence."""
        try:
            return action()
        except OSError as error:
            raise self.failure(error)

    def failure(self, error):
        code, reason = FAILURES.get(error.errno, ('denied', error.strerror))
        if error.errno == errno.ENOSPC:
            place = '/' + os.fsdecode(self.parts[0])
            for hit in limits_reached():
                if hit.get('place') == place and hit['kind'] == 'files':
                    reason = '%s holds %s files, as many as it may' % (place, format(hit['count'], ','))
                elif hit.get('place') == place:
                    reason = 'no space is left: %s holds %d MiB' % (place, hit['mebibytes'])
        return Failure(code, '%s: %s.' % (self.text, reason))
