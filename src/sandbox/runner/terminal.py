"""Output as a terminal shows it in the end: progress bars in their last state, no escape sequences."""

import re

ROWS = 24  # lines that code can still go back to, as on a terminal
LONGEST = 16 * 1024  # characters of a line that can be rewritten; a longer line is settled at once
CONTROL = re.compile(
    '\r*\n|\r+|\x08+|\x07+'
    '|(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]'  # CSI: colors, cursor, erasing
    '|\x1b[]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\\\)'  # strings: titles, links
    '|\x1b[ -/]{0,8}[0-~]|\x1b'
)
NOT_PLAIN = re.compile('[\r\x07\x08\x1b\x9b]')
INCOMPLETE = re.compile(  # the end of a chunk whose meaning depends on the next chunk
    '(?:(?<!\r)\r+|(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}|\x1b(?:[]PX^_][^\x07\x1b\n]{0,4096}\x1b?|[ -/]{0,8}))\\Z'
)


class Row:
    __slots__ = ('text', 'rewritten', 'shown')

    def __init__(self):
        self.text = ''
        self.rewritten = False
        self.shown = None  # its text when followers saw it last

    def visible(self):
        return self.text.rstrip() if self.rewritten else self.text


class Screen:
    """The last lines of a terminal.

    A line is settled when the next one begins. After a line was rewritten the last ROWS lines stay open: several progress
    bars below each other are rewritten by moving up and down.
    """

    def __init__(self):
        self.rows = [Row()]
        self.at = self.column = 0
        self.held = ''

    def write(self, text):
        """Returns the rows that are settled now, each with its line end."""
        text = self.held + text
        incomplete = INCOMPLETE.search(text, max(0, len(text) - 4200))
        cut = incomplete.start() if incomplete else len(text)
        self.held, text = text[cut:], text[:cut]
        settled = []
        text = self.put_plain_lines(text, settled)
        done = 0
        for found in CONTROL.finditer(text):
            self.put(text[done : found.start()], settled)
            self.control(found.group(), settled)
            done = found.end()
        self.put(text[done:], settled)
        return settled

    def put_plain_lines(self, text, settled):
        """Settles whole lines without control characters at once. Returns the rest of the text."""
        row = self.rows[0]
        if len(self.rows) > 1 or self.column != len(row.text) or row.shown is not None or NOT_PLAIN.search(text):
            return text
        lines, end, rest = text.rpartition('\n')
        if not end or row.rewritten:
            return text
        row.text += lines + end
        settled.append(self.rows.pop())
        self.rows.append(Row())
        self.column = 0
        return rest

    def put(self, text, settled):
        if not text:
            return
        row, column = self.rows[self.at], self.column
        if column == len(row.text):
            row.text += text
        else:
            row.text = row.text[:column].ljust(column) + text + row.text[column + len(text) :]
            row.rewritten = True
        self.column += len(text)
        if len(row.text) > LONGEST:
            for above in self.rows[: self.at]:
                above.text += '\n'
            settled += self.rows[: self.at + 1]
            self.rows[: self.at + 1] = [Row()]
            self.at = self.column = 0

    def control(self, found, settled):
        row, kind = self.rows[self.at], found[-1]
        if kind == '\n':
            self.at += 1
            self.column = 0
            if self.at == len(self.rows):
                self.rows.append(Row())
            while self.at and (not self.rows[0].rewritten or len(self.rows) > ROWS):
                settled.append(self.ended(self.rows.pop(0), '\n'))
                self.at -= 1
        elif kind == '\r':
            row.rewritten = True
            self.column = 0
        elif kind == '\b':
            self.column = max(0, self.column - len(found))
        elif found[0] == '\x9b' or found[:2] == '\x1b[':
            digits = found.strip('\x1b[\x9b' + kind)
            if digits.isdigit() or not digits:
                self.move(row, kind, int(digits[:5] or 0))

    def move(self, row, kind, number):
        steps = number or 1
        if kind in 'AF':
            self.at = max(0, self.at - steps)
        elif kind in 'BE':
            self.at = min(len(self.rows) - 1, self.at + steps)
        elif kind == 'C':
            self.column = min(LONGEST, self.column + steps)
        elif kind == 'D':
            self.column = max(0, self.column - steps)
        elif kind == 'G':
            self.column = min(LONGEST, steps) - 1
        elif kind == 'K' or kind == 'J' and number == 0:
            self.erase(row, kind, number)
        if kind in 'EF':
            self.column = 0

    def erase(self, row, kind, number):
        before = row.text
        row.text = '' if number == 2 else ' ' * self.column + before[self.column :] if number else before[: self.column]
        row.rewritten = row.rewritten or row.text != before
        if kind == 'J':
            del self.rows[self.at + 1 :]

    def ended(self, row, end):
        row.text = row.visible() + end
        return row

    def finish(self):
        *above, last = self.rows
        return [self.ended(row, '\n') for row in above] + [self.ended(last, '')]
