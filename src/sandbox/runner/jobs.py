"""Background jobs: programs beside the sessions. Their output goes to files, and the host looks at what is new."""

import collections
import os
import time

from .children import News, become_child, become_keeper, fork_child, place_descriptors
from .job_output import JobOutput
from .processes import children, end_of, kill_tree
from .steps import find_node
from .system import log
from .wire import CHUNK, loop, read_available

RUNNING = 8  # jobs at once
KEPT = 32  # ended jobs, and answered requests, that are remembered
UNREAD = 64 * 1024  # bytes of input that wait for a job to read them
PAUSE = 0.5  # seconds without output after which a look ends
TICK = 0.1  # seconds between two checks of a look

jobs = {}
looks = {}  # open requests by id
answers = collections.OrderedDict()  # key of a request → its answer, None while it is open


class Job:
    """A program with all its descendants. It ends with its first process. Raises OSError if it cannot fork."""

    def __init__(self, header, code):
        self.id, self.language = header['job'], header['language']
        self.began, self.ended = time.monotonic(), None
        self.end = None
        self.output = JobOutput(header['saveAs'], header['saveBytes'])
        self.unread = bytearray()
        theirs, ours = zip(os.pipe(), os.pipe()[::-1], os.pipe()[::-1])
        become = lambda: become_job(self.language, code, *theirs[:2])
        try:
            self.keeper = fork_child('job', lambda: become_keeper(theirs[2], become))
        except OSError:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self.stdin, self.source, news = ours
        os.set_blocking(self.stdin, False)
        children[self.keeper] = self.keeper_ended
        loop.watch(self.source, self.on_output)
        self.news = News(news, self.on_word)
        if header.get('timeoutMs'):
            end = {'kind': 'timeout', 'afterMs': header['timeoutMs']}
            loop.at(('job', self.id), self.began + header['timeoutMs'] / 1000, lambda: self.died(end))

    def on_output(self):
        data = read_available(self.source, CHUNK)
        if data:
            self.output.add(data)
        elif data == b'':
            loop.forget(self.source)
            self.source = None
            check_looks(self)

    def on_word(self, word, number):
        if word == b'dead':
            self.died(end_of(number))

    def keeper_ended(self, _):
        if not self.end:
            self.news.read()  # what the keeper wrote before it ended
            self.died({'kind': 'signal', 'signal': 'SIGKILL'})

    def died(self, end):
        """Processes that it left behind are killed. Its output is still read to the end."""
        if self.end:
            return
        self.end, self.ended = end, time.monotonic()
        loop.timers.pop(('job', self.id), None)
        kill_tree(self.keeper)
        self.close_input()
        self.news.close()
        check_looks(self)

    def over(self):
        return self.end is not None and self.source is None

    def kill(self):
        self.died({'kind': 'cancelled'})

    def type(self, data):
        """Sends input. Returns why it was not sent, or None."""
        if self.stdin is None:
            return 'closed'
        if len(self.unread) + len(data) > UNREAD:
            return 'unread'
        self.unread += data
        self.on_writable()

    def on_writable(self):
        try:
            while self.unread:
                del self.unread[: os.write(self.stdin, self.unread)]
        except BlockingIOError:
            pass
        except OSError:  # it has closed its input
            return self.close_input()
        loop.want(self.stdin, None, self.on_writable if self.unread else None)

    def close_input(self):
        if self.stdin is not None:
            loop.want(self.stdin)
            os.close(self.stdin)
            self.stdin = None
        self.unread.clear()

    def state(self):
        milliseconds = int(((self.ended or time.monotonic()) - self.began) * 1000)
        return {'id': self.id, 'language': self.language, **({'end': self.end} if self.over() else {}), 'ms': milliseconds,
                'bytes': self.output.total, 'saved': self.output.saved()}


class Look:
    """A request for a job's new output. It is answered when the job has ended, has paused after new output, or time is up."""

    def __init__(self, header, job, mark):
        self.id, self.key, self.cap = header['id'], header['key'], header['outputBytes']
        self.job, self.mark = job, mark
        self.until = time.monotonic() + header['waitMs'] / 1000
        looks[self.id] = self
        self.check()

    def check(self):
        now = time.monotonic()
        output = self.job.output
        paused = output.total > self.mark and now - output.last >= PAUSE
        if answers.get(self.key):
            self.answer(*answers[self.key])  # another connection was first
        elif self.job.over() or paused or now >= self.until:
            start, end = output.take(self.job.over())
            self.answer({'job': self.job.state(), 'from': start, 'to': end}, output.text(start, end, self.cap))
        else:
            loop.at(('look', self.id), min(self.until, now + TICK), self.check)

    def answer(self, reply, text):
        self.leave()
        answer_job(self.id, self.key, reply, text)

    def leave(self):
        loop.timers.pop(('look', self.id), None)
        looks.pop(self.id, None)


def check_looks(job):
    for look in list(looks.values()):
        if look.job is job:
            look.check()


def answer_job(request, key, reply, text=b''):
    if key:
        answers[key] = (reply, text)
    for at in range(0, len(text), CHUNK):
        loop.send({'id': request, 'op': 'out'}, text[at : at + CHUNK])
    loop.send({'id': request, 'op': 'done', **reply})


def on_job_request(header, payload):
    """A repeated key gets the first answer, or waits for it. Nothing is started or sent twice."""
    key, name = header['key'], header.get('job')
    refuse = lambda why: answer_job(header['id'], key, {'refused': why})
    if name is None:
        return answer_job(header['id'], None, {'jobs': [job.state() for job in jobs.values()]})
    known, answer = key in answers, answers.get(key)
    if answer:
        return answer_job(header['id'], key, *answer)
    answers[key] = None
    while len(answers) > KEPT:
        answers.popitem(last=False)
    if header['action'] == 'start' and name not in jobs:
        refused = start_job(header, payload)
        if refused:
            return refuse(refused)
    job = jobs.get(name)
    if not job:
        return refuse('unknown')
    mark = job.output.taken
    if header['action'] == 'input' and not known:
        mark = job.output.total
        refused = job.type(payload)
        if refused:
            return refuse(refused)
    elif header['action'] == 'kill':
        job.kill()
    Look(header, job, mark)


def start_job(header, code):
    """Returns why the job was not started, or None."""
    ended = [job for job in jobs.values() if job.over()]
    if len(jobs) - len(ended) >= RUNNING:
        return 'too_many'
    for job in ended[: len(ended) - KEPT + 1]:
        del jobs[job.id]
        job.output.close()
    try:
        jobs[header['job']] = Job(header, code)
    except OSError:
        return 'not_started'


def leave_look(request):
    """The host no longer waits. Output that was not answered stays new."""
    looks[request].leave()
    loop.send({'id': request, 'op': 'done', 'refused': 'left'})


def become_job(language, code, stdin, output):
    """In a forked child: becomes the program of a job. Never returns."""
    become_child()
    place_descriptors({0: stdin, 1: output, 2: output}, True)
    program = {'python': 'python3', 'javascript': find_node() or 'node', 'bash': 'bash'}[language]
    option = '-e' if language == 'javascript' else '-c'
    os.environ['PYTHONUNBUFFERED'] = '1'  # otherwise output is seen late
    try:
        os.execvp(program, [program, option, code])
    except OSError as error:
        log('%s: %s' % (program, error.strerror))
        os._exit(127)
