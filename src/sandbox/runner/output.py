"""The output of one step, bounded by its cap."""

import codecs
import time

from .terminal import Screen
from .wire import CHUNK, loop

MARK_BYTES = 64  # reserved for the mark where output was cut
PREVIEW = 200  # characters of a line that is shown before the step ends, once the cap is reached


class Output:
    """Sends settled lines as they come, up to half the cap, and keeps the end of the rest, which is sent last, behind a
    mark that says how much was cut. Open lines, such as progress bars, are shown from time to time as `live`."""

    def __init__(self, step_id, cap, file):
        self.id = step_id
        self.file = file  # a ResultFile
        self.decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self.screen = Screen()
        self.head_left = cap // 2
        self.tail_cap = cap - cap // 2
        self.tail = bytearray()
        self.cut = 0
        self.live_left = cap  # for what is shown before it is settled
        self.open = ''  # the unfinished line that was shown last
        self.began = self.shown = 0

    def feed(self, data):
        self.settle(self.screen.write(self.decoder.decode(data)))
        name = ('show', self.id)
        if name in loop.timers or self.live_left <= 0:
            return
        changed = [row for row in self.screen.rows if row.text and row.visible() != row.shown]
        if changed or not self.head_left:
            now = time.monotonic()
            self.began = self.began or now
            # A step of an hour shows its progress bar some seventy times, not every second.
            rarely = not self.head_left or all(row.rewritten for row in changed)
            pause = max(1, (now - self.began) / 10) if rarely else 0.2
            show = self.show_open if self.head_left else self.show_newest
            loop.at(name, max(now + 0.2, self.shown + pause), show)

    def show_open(self):
        """Shows lines that changed and are not settled, if they are small enough to be kept."""
        self.shown = time.monotonic()
        *above, last = self.screen.rows
        for row in above:
            if row.visible() != row.shown:
                self.show(row, row.visible() + '\n')
        if last.text and last.visible() != last.shown and 4 * len(last.text) < self.head_left:
            self.show(last, last.visible())
            self.open = last.shown

    def show_newest(self):
        """After half the cap, shows the newest line from time to time, so that followers see that the step goes on."""
        self.shown = time.monotonic()
        end = max(0, self.tail.rfind(b'\n'))
        begin = self.tail.rfind(b'\n', 0, end) + 1
        newest = self.screen.rows[-1].visible() or self.tail[begin:end].decode('utf-8', 'replace')
        line = '\n… ' + newest[:PREVIEW]
        if line != self.open:
            self.open = line
            self.live_left -= len(line)
            loop.send({'id': self.id, 'op': 'live'}, line.encode('utf-8', 'replace'))

    def show(self, row, text):
        """Continues the line that was shown last if `text` begins with it; otherwise begins a new line."""
        begun, self.open, row.shown = self.open, '', text.rstrip('\n')
        self.live_left -= len(text)
        text = text[len(begun) :] if text.startswith(begun) else '\n' + text
        for at in range(0, len(text), CHUNK // 4):  # a character has at most four bytes
            piece = text[at : at + CHUNK // 4].encode('utf-8', 'replace')
            loop.send({'id': self.id, 'op': 'live'}, piece)

    def settle(self, rows):
        fresh = []  # lines that were never shown are sent in one piece: a frame for each would keep the host busy
        for row in rows:
            if row.shown is None and self.open == '':
                fresh.append(row.text)
                continue
            self.emit(self.take(''.join(fresh)))
            fresh.clear()
            head = self.take(row.text)
            if head and (row.shown != row.text.rstrip('\n') or self.open == row.shown):
                self.show(row, head.decode())
            self.emit(head, True)
        self.emit(self.take(''.join(fresh)))
        if len(self.tail) > 2 * self.tail_cap + CHUNK:
            self.shorten(self.tail_cap)

    def take(self, text):
        """Returns the part that is sent now and moves the rest to the tail."""
        data = text.encode('utf-8', 'replace')
        self.file.add(data)
        head = self.take_head(data)
        self.tail += data[len(head) :]
        return head

    def take_head(self, data):
        size = self.head_left
        while 0 < size < len(data) and data[size] & 0xC0 == 0x80 and self.head_left - size < 3:
            size -= 1  # never splits a character
        self.head_left = 0 if size < len(data) else self.head_left - len(data)
        return data[:size]

    def emit(self, data, quiet=False):
        for at in range(0, len(data), CHUNK):
            loop.send({'id': self.id, 'op': 'out', **({'quiet': True} if quiet else {})}, data[at : at + CHUNK])

    def shorten(self, room):
        over = len(self.tail) - room
        if over > 0:
            while over < len(self.tail) and self.tail[over] & 0xC0 == 0x80:
                over += 1
            del self.tail[:over]
            self.cut += over

    def finish(self):
        loop.timers.pop(('show', self.id), None)
        self.settle(self.screen.write(self.decoder.decode(b'', True)) + self.screen.finish())
        if self.cut or len(self.tail) > self.tail_cap:
            self.shorten(self.tail_cap - MARK_BYTES)
            self.emit(('\n[… %s bytes of output cut here …]\n' % format(self.cut, ',')).encode())
        self.emit(bytes(self.tail))
