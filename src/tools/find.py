"""The search of the `find` tool. Runs inside the sandbox: `python3 -I -S -c SOURCE REQUEST`.

REQUEST is JSON: path, glob?, pattern?, results and bytes (maximum), seconds (time limit). Prints the result for the model.
If the request can not be answered, exits with 1 and prints the reason to stderr.
"""

import json
import os
import re
import signal
import stat
import sys

FILE_BYTES = 32 * 1024 * 1024  # larger files are not searched
LINE_CHARS = 300  # shown of a line
BEFORE_CHARS = 100  # shown before the match in a longer line
CLOSED = ('/proc', '/sys', '/dev', '/run')


class Refusal(Exception):
    """The request can not be answered."""


class OutOfTime(Exception):
    """The time limit was reached."""


class Full(Exception):
    """The result has its maximum size."""


def translate(glob):
    """A glob as a regular expression: `*` and `?` without `/`, `**`, `[…]`, `{a,b}`."""
    made, at, depth = '', 0, 0
    while at < len(glob):
        char = glob[at]
        end = glob.find(']', at + 2) if char == '[' else -1
        if glob.startswith('**/', at) and (at == 0 or glob[at - 1] == '/'):
            made, at = made + '(?:[^/]+/)*', at + 2
        elif glob.startswith('**', at):
            made, at = made + '.*', at + 1
        elif char in '*?':
            made += '[^/]*' if char == '*' else '[^/]'
        elif end > 0:
            made, at = made + bracket(glob[at + 1 : end]), end
        elif char == '{' and '}' in glob[at:]:
            made, depth = made + '(?:', depth + 1
        elif char in ',}' and depth > 0:
            made, depth = made + ('|' if char == ',' else ')'), depth - (char == '}')
        else:
            made += re.escape(char)
        at += 1
    return made + ')' * depth


def bracket(inside):
    negated = inside[0] in '!^'
    chars = re.sub(r'([\\\[\]^&~|])', r'\\\1', inside[negated:])
    return '[%s%s]' % ('^/' if negated else '', chars)


class Glob:
    """File names by a glob. Without `/` it is compared with the last component of a path, as ripgrep does."""

    def __init__(self, text):
        while text.startswith(('./', '/')):
            text = text[text.index('/') + 1 :]
        if text.endswith('/'):
            text += '**'
        self.deep = '/' in text
        self.pattern = compiled('glob', translate(text), re.DOTALL)
        dotted = [part for part in text.split('/') if part.startswith(('.', '{.', '[.'))]
        self.hidden = [compiled('glob', translate(part), re.DOTALL) for part in dotted]

    def matches(self, path, name):
        return self.pattern.fullmatch(path if self.deep else name) is not None

    def names_hidden(self, name):
        """A component of the glob that begins with a dot matches this hidden name."""
        return any(each.fullmatch(name) for each in self.hidden)


def compiled(argument, text, flags=0):
    try:
        return re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise Refusal('`%s` is not valid: %s.' % (argument, error))


class Found:
    """The result, within its limits, and what was left out."""

    def __init__(self, request):
        self.lines, self.results, self.files, self.searched = [], 0, 0, 0
        self.most, self.room = request['results'], request['bytes']
        self.skipped = {'hidden': 0, 'binary': 0, 'large': 0, 'unreadable': 0}
        self.at = '.'

    def take(self, text, heading=None):
        size = sum(len(line.encode('utf-8', 'replace')) + 1 for line in (heading, text) if line is not None)
        if self.results == self.most or size > self.room:
            raise Full
        if heading is not None:
            self.lines.append(heading)
            self.files += 1
        self.lines.append(text)
        self.results += 1
        self.room -= size


class Search:
    def __init__(self, request, found):
        self.found = found
        self.glob = Glob(request['glob']) if 'glob' in request else None
        self.pattern = compiled('pattern', request['pattern']) if 'pattern' in request else None
        self.start = request['path']

    def run(self):
        if '\0' in self.start or '..' in self.start.split('/'):
            raise Refusal('`path` must not contain ".." or NUL.')
        absolute = self.start.startswith('/')
        path = os.path.normpath('/' + self.start.lstrip('/') if absolute else '/workspace/' + self.start)
        self.check(path)
        shown = '' if path == '/workspace' else path if absolute else os.path.relpath(path, '/workspace')
        if os.path.isdir(path):
            self.walk(os.path.realpath(path), shown.rstrip('/') + '/' if shown else '')
        else:
            self.visit(path, shown)

    def check(self, path):
        real = os.path.realpath(path)
        if real != path and path.split('/')[1] in ('workspace', 'tmp'):
            raise Refusal('`%s` is or contains a symbolic link, which is not followed.' % self.start)
        if real in CLOSED or real.startswith(tuple(each + '/' for each in CLOSED)):
            raise Refusal('`%s` can not be searched: /proc, /sys, /dev and /run are closed.' % self.start)
        if not os.path.exists(real):
            raise Refusal('There is no file or directory `%s`.' % self.start)

    def walk(self, top, shown):
        """Visits the files below a directory, sorted by path. Follows no links."""
        stack = [self.entries(top, '')]
        while stack:
            entry = next(stack[-1], None)
            if entry is None:
                stack.pop()
                continue
            path, relative, is_directory = entry
            if path in CLOSED:
                continue
            self.found.at = shown + relative
            if is_directory:
                stack.append(self.entries(path, relative + '/'))
            elif self.glob is None or self.glob.matches(relative, os.path.basename(relative)):
                self.visit(path, shown + relative)

    def entries(self, directory, prefix):
        """Yields directories and regular files with their path and their path below the start."""
        try:
            with os.scandir(directory) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            self.found.skipped['unreadable'] += 1
            return
        for entry in listed:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not entry.is_file(follow_symlinks=False):
                continue
            if entry.name.startswith('.') and not self.includes(entry.name, prefix, is_directory):
                self.found.skipped['hidden'] += 1
                continue
            yield entry.path, prefix + entry.name, is_directory

    def includes(self, name, prefix, is_directory):
        """The glob names this hidden entry."""
        if self.glob is None or not self.glob.hidden:
            return False
        return self.glob.names_hidden(name) if is_directory else self.glob.matches(prefix + name, name)

    def visit(self, path, shown):
        found, name = self.found, printable(shown)
        if self.pattern is None:
            found.searched += 1
            return found.take(name)
        text = self.read(path)
        if text is None:
            return
        found.searched += 1
        heading = name if not found.lines else '\n' + name
        for number, line in enumerate(text.split('\n'), 1):
            match = self.pattern.search(line)
            if match and (line or number <= text.count('\n')):
                found.take('%d\t%s' % (number, around(line, match.start())), heading)
                heading = None

    def read(self, path):
        """The text of a file. None if it is skipped."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(fd, 'rb') as file:
                info = os.fstat(fd)
                if not stat.S_ISREG(info.st_mode):
                    return None
                data = file.read(FILE_BYTES + 1) if info.st_size <= FILE_BYTES else None
        except OSError:
            self.found.skipped['unreadable'] += 1
            return None
        if data is None or len(data) > FILE_BYTES:
            self.found.skipped['large'] += 1
            return None
        text = decoded(data)
        if text is None:
            self.found.skipped['binary'] += 1
        return text


def decoded(data):
    """None for binary content."""
    if data[:2] in (b'\xff\xfe', b'\xfe\xff'):
        return data.decode('utf-16', 'replace').replace('\r\n', '\n')
    if b'\0' in data:
        return None
    try:
        return data.decode('utf-8-sig').replace('\r\n', '\n')
    except UnicodeDecodeError:
        return data.decode('windows-1252', 'replace').replace('\r\n', '\n')


def around(line, at):
    """The part of a line that is shown."""
    if len(line) <= LINE_CHARS:
        return line
    first = 0 if at < LINE_CHARS - BEFORE_CHARS else at - BEFORE_CHARS
    last = first + LINE_CHARS
    return ('…' if first else '') + line[first:last] + ('…' if last < len(line) else '')


def printable(path):
    return path if path.isprintable() else json.dumps(path)


def count(number, noun):
    return '%d %s%s' % (number, noun, '' if number == 1 else 's')


def report(found, search, stopped):
    """What was found, and in brackets how much was searched and what was left out."""
    by_line = search.pattern is not None
    if not found.results:
        total = 'Nothing matched' + (' in %s' % count(found.searched, 'file') if by_line else '')
    elif by_line:
        total = '%s in %s' % (count(found.results, 'line'), count(found.files, 'file'))
    else:
        total = count(found.results, 'file')
    skipped = found.skipped
    notes = [
        stopped,
        skipped['hidden'] and 'skipped %d hidden (name them in glob or path)' % skipped['hidden'],
        skipped['binary'] and 'skipped %d binary' % skipped['binary'],
        skipped['large'] and 'skipped %d over %d MiB' % (skipped['large'], FILE_BYTES // 1024 // 1024),
        skipped['unreadable'] and '%d could not be read' % skipped['unreadable'],
    ]
    return '\n'.join([*found.lines, '[%s]' % '; '.join([total, *(note for note in notes if note)])])


def main():
    request = json.loads(sys.argv[1])

    def on_alarm(*_):
        raise OutOfTime

    found, stopped = Found(request), None
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, request['seconds'])
    try:
        search = Search(request, found)
        try:
            search.run()
        except Full:
            stopped = 'stopped there, more match: narrow glob, pattern or path'
        except OutOfTime:
            stopped = 'stopped after %g s at %s: narrow glob, pattern or path' % (request['seconds'], printable(found.at)[:LINE_CHARS])
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Refusal as refusal:
        sys.exit(str(refusal))
    except OutOfTime:
        sys.exit('It took too long.')
    except ValueError:
        sys.exit('`path` is not valid Unicode.')
    sys.stdout.buffer.write(report(found, search, stopped).encode('utf-8', 'replace'))


main()
