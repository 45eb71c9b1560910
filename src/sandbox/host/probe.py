# The self-test's attacks, run as a step inside a real sandbox. `targets` is put before it: JSON of {port, abstract, secrets,
# files, terminals, counters, neighbour: {name, port, key, locked}}: canaries of the host's and of a sandbox beside this one.
# Prints one JSON object: {"attacks": [{name, refused, detail}], "inside": "what code finds here", "browser": path or null}.
import ctypes
import errno
import fcntl
import importlib.util
import json
import os
import platform
import pty
import re
import resource
import shutil
import socket
import stat
import subprocess

targets = json.loads(targets)
libc = ctypes.CDLL(None, use_errno=True)
attacks = []


def refused(name, detail):
    attacks.append({'name': name, 'refused': True, 'detail': str(detail)})


def held_open(name, detail):
    attacks.append({'name': name, 'refused': False, 'detail': str(detail)})


def attempt(name, action):
    """The action is the attack: an OSError refuses it."""
    try:
        detail = action()
    except TimeoutError:
        held_open(name, 'no answer, and no refusal either')
    except OSError as error:
        refused(name, errno.errorcode.get(error.errno, error))
    else:
        held_open(name, detail)


def syscall(name, x86_64, aarch64, *arguments):
    def call():
        number = aarch64 if platform.machine() == 'aarch64' else x86_64
        result = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
        if result == -1:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return 'returned %d' % result

    attempt(name, call)


def in_child(name, x86_64, aarch64, *arguments):
    """For what would change this process if it were allowed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        own = os.getpid()
        syscall(name, x86_64, aarch64, *arguments)
        if os.getpid() != own:
            os._exit(0)  # what a clone made that was not refused
        os.write(write, json.dumps(attacks[-1]).encode())
        os._exit(0)
    os.close(write)
    attacks.append(json.loads(os.read(read, 4096)))
    os.close(read)
    os.waitpid(pid, 0)


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        connection.connect(address)
        return 'connected'


def write_to(path, text='x'):
    with open(path, 'w') as file:
        file.write(text)
    return 'written'


def seen(path):
    os.stat(path)
    return 'seen'


def seen_in(path):
    names = os.listdir(path)
    if not names:
        raise OSError(errno.ENOENT, 'empty')
    return names


def something_in(path):
    with open(path, 'rb') as file:
        if not file.read(64):
            raise OSError(errno.ENODATA, 'empty')
    return 'read'


def none_of(found):
    """An attack that looks for something: what it finds was not refused."""
    found = list(found)
    if not found:
        raise OSError(errno.ENOENT, 'none')
    return ', '.join(map(str, found[:5]))


def read_from(path):
    with open(path, 'rb') as file:
        return '%d bytes read' % len(file.read(64))


OWN_PLACES = ('/workspace', '/tmp', '/dev/shm', '/run/errand')


def leaked_descriptors():
    """What the host, or bubblewrap, or runc had open (CVE-2024-21626): pipes of the runner's are all there should be."""
    for name in os.listdir('/proc/self/fd'):
        try:
            place = os.readlink('/proc/self/fd/' + name)
        except FileNotFoundError:
            continue  # of the listing itself
        if not place.startswith(('pipe:', 'anon_inode:', '/dev/null', '/dev/urandom', '/proc/') + OWN_PLACES):
            yield '%s → %s' % (name, place)
    if not os.getcwd().startswith('/workspace'):
        yield 'the working directory, %s' % os.getcwd()


def writable_mounts():
    """Places of the host's that can be written to (CVE-2026-25725), whatever they are called."""
    with open('/proc/self/mountinfo') as file:
        mounts = [line.split(' ') for line in file]
    for fields in mounts:
        place, options = fields[4].encode().decode('unicode_escape'), fields[5].split(',')
        if 'ro' in options or place in OWN_PLACES or place == '/dev/pts':
            continue
        try:
            kind = os.stat(place).st_mode
            if stat.S_ISDIR(kind):
                trial = place.rstrip('/') + '/errand-probe'
                os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                os.unlink(trial)
            elif stat.S_ISREG(kind):
                os.close(os.open(place, os.O_WRONLY))
            else:
                continue  # a device: looked at below
            yield place
        except OSError:
            pass


HARMLESS = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2)}  # null zero full random urandom tty console ptmx


def devices():
    for folder, _, names in os.walk('/dev'):
        for name in names:
            path = os.path.join(folder, name)
            try:
                found = os.lstat(path)
                number = os.major(found.st_rdev), os.minor(found.st_rdev)
                device = stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode)
                if device and number not in HARMLESS and not 136 <= number[0] <= 143:
                    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                    yield path
            except OSError:
                pass


def kernel_settings():
    """Each is written what it holds already."""
    for folder, _, names in os.walk('/proc/sys'):
        for name in names:
            try:
                if not stat.S_ISREG(os.stat(os.path.join(folder, name)).st_mode):
                    continue  # covered, by a device
                with open(os.path.join(folder, name), 'r+b', buffering=0) as file:
                    held = file.read(4096)
                    file.seek(0)
                    file.write(held)
                yield os.path.join(folder, name)
            except OSError:
                pass


# What a namespace has of its own: net, ipc, pid, user.
OWN_SETTINGS = re.compile('/proc/sys/(net/|user/|fs/mqueue/|kernel/(auto_msgmni|msg|sem|shm|pid_max|ns_last_pid))')


def mounts_without_end():
    for place in OWN_PLACES:
        try:
            room = os.statvfs(place)
        except OSError:
            continue
        if not 0 < room.f_files <= targets['files']:
            yield '%s: %d' % (place, room.f_files)


def type_into_terminal():
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, 0x5412, b'x')
    finally:
        os.close(master)
        os.close(slave)
    return 'typed'


def raise_limit():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most + 1))
    except ValueError as error:
        raise OSError(errno.EPERM, str(error))
    return 'raised'


def host_processes():
    """PID 1 is the runner, or what the runner was started by; anything else is somebody else's view."""
    with open('/proc/1/cmdline', 'rb') as file:
        if b'runner.py' not in file.read():
            yield '1'


def interfaces():
    with open('/proc/net/dev') as file:
        names = [line.split(':')[0].strip() for line in file if ':' in line]
    return [name for name in names if name != 'lo']


def terminals_without_end():
    held = []
    try:
        while len(held) <= targets['terminals']:
            held.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))
        return len(held)
    finally:
        for fd in held:
            os.close(fd)


def counters_of_the_machine():
    for path in targets['counters']:
        try:
            something_in(path)
            yield path
        except OSError:
            pass


def page_in_memory():
    fd = os.open('/usr/bin/python3', os.O_RDONLY) if os.path.exists('/usr/bin/python3') else os.open('/proc/self/exe', os.O_RDONLY)
    try:
        return os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    finally:
        os.close(fd)


def locked_by_the_neighbour(kind):
    """It has locked all these: a lock that is seen here is on an inode that both have."""
    for path in targets['neighbour']['locked'][kind]:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield path
        except OSError:
            pass  # it takes no locks
        finally:
            os.close(fd)


def send(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as sender:
        sender.settimeout(3)
        sender.sendto(b'x' * 64, address)
    return 'sent'


attempt('descriptors that were left open', lambda: none_of(leaked_descriptors()))

buffer = ctypes.create_string_buffer(256)
in_child('mount', 165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)
in_child('mount, the new way (fsopen)', 430, 430, b'tmpfs', 0)
in_child('mount, the new way (open_tree)', 428, 428, -100, b'/tmp', 1)
in_child('umount', 166, 39, b'/tmp', 2)
in_child('pivot_root', 155, 41, b'/tmp', b'/tmp')
for kind, flag in (('user', 0x10000000), ('mount', 0x20000), ('network', 0x40000000), ('process', 0x20000000)):
    in_child('a new %s namespace (unshare)' % kind, 272, 97, flag)
    in_child('a new %s namespace (clone)' % kind, 56, 220, flag | 17, 0, 0, 0, 0)
in_child('a new user namespace (clone3)', 435, 435, buffer, 64)
in_child('setns', 308, 268, 0, 0)
in_child('chroot', 161, 51, b'/tmp')
in_child('ptrace', 101, 117, 0, 0, 0, 0)
in_child('ptrace of the parent (attach)', 101, 117, 16, os.getpid(), 0, 0)
syscall('bpf', 321, 280, 0, buffer, 64)
syscall('perf_event_open', 298, 241, buffer, 0, -1, -1, 0)
syscall('keyctl', 250, 219, 0, -3, 1)
syscall('add_key', 248, 217, b'user', b'errand', b'x', 1, -3)
syscall('request_key', 249, 218, b'user', b'errand', None, -3)
syscall('io_uring_setup', 425, 425, 4, buffer)
syscall('asynchronous I/O (io_setup)', 206, 0, 1, buffer)
syscall('userfaultfd', 323, 282, 1)
syscall('process_vm_readv', 310, 270, 1, 0, 0, 0, 0, 0)
syscall('open_by_handle_at', 304, 265, -100, buffer, 0)
syscall('init_module', 175, 105, buffer, 0, b'')
syscall('kexec_load', 246, 104, 0, 0, 0, 0)
in_child('sethostname', 170, 161, b'errand', 6)
in_child('settimeofday', 164, 170, None, None)
attempt('setuid', lambda: os.setuid(0))
attempt('setgid', lambda: os.setgid(0))
attempt('setgroups', lambda: os.setgroups([0]))
attempt('a higher priority', lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
attempt('a higher limit', raise_limit)
attempt('keystrokes into a terminal (TIOCSTI)', type_into_terminal)
attempt('making a device', lambda: os.mknod('/tmp/errand-probe', 0o666 | stat.S_IFCHR, os.makedev(1, 1)))
attempt('devices of the host', lambda: none_of(devices()))

attempt('a vsock socket', lambda: socket.socket(40, socket.SOCK_STREAM).close())
attempt('a packet socket', lambda: socket.socket(17, socket.SOCK_RAW).close())
attempt('a netlink socket', lambda: socket.socket(16, socket.SOCK_RAW, 0).close())
attempt('a raw socket', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("the host's loopback", lambda: connect(socket.AF_INET, ('127.0.0.1', targets['port'])))
attempt("the host's abstract sockets", lambda: connect(socket.AF_UNIX, '\0' + targets['abstract']))
attempt('a route to anywhere', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9)))
attempt('a route to anywhere (IPv6)', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('2001:db8::1', 9)))
attempt('the metadata address', lambda: connect(socket.AF_INET, ('169.254.169.254', 80)))
attempt('DNS', lambda: socket.getaddrinfo('errand-probe.invalid', 80))
attempt('DNS by datagram', lambda: send(socket.AF_INET, socket.SOCK_DGRAM, 0, ('192.0.2.53', 53)))
attempt('ping', lambda: send(socket.AF_INET, socket.SOCK_DGRAM, 1, ('192.0.2.1', 0)))
attempt('network interfaces', lambda: none_of(interfaces()))

attempt("the runner's memory", lambda: read_from('/proc/1/mem'))
attempt("the runner's file descriptors", lambda: os.listdir('/proc/1/fd'))
attempt("the runner's environment", lambda: something_in('/proc/1/environ'))
attempt("the host's processes", lambda: none_of(host_processes()))
attempt("the host's kernel memory", lambda: something_in('/proc/kcore'))
attempt("the host's kernel log", lambda: something_in('/proc/kmsg'))
attempt("the host's command line", lambda: something_in('/proc/cmdline'))
attempt('sysrq', lambda: os.close(os.open('/proc/sysrq-trigger', os.O_WRONLY)))
attempt('escaping the memory killer', lambda: write_to('/proc/self/oom_score_adj', '-1000'))
attempt('other users (uid_map)', lambda: write_to('/proc/self/uid_map', '0 0 1'))
written = list(kernel_settings())
attempt('writing to /proc/sys', lambda: none_of(path for path in written if not OWN_SETTINGS.match(path)))
attempt('writing to the settings of its own namespaces', lambda: none_of(filter(OWN_SETTINGS.match, written)))
attempt('/sys', lambda: seen_in('/sys'))
attempt('writing to /usr', lambda: write_to('/usr/errand-probe'))
attempt('writing to /', lambda: write_to('/errand-probe'))
attempt('writing to /etc', lambda: write_to('/etc/errand-probe'))
attempt('writing to /dev', lambda: write_to('/dev/errand-probe'))
attempt('writing to the host', lambda: none_of(writable_mounts()))
attempt('a hard link to a file of the host', lambda: os.link('/usr/bin/python3', '/workspace/errand-probe'))
attempt('a hard link to the runner', lambda: os.link('/errand/runner.py', '/tmp/errand-probe'))
attempt('terminals without end', terminals_without_end)
attempt('counters of the whole machine', lambda: none_of(counters_of_the_machine()))
attempt('whether a file of the root is in memory', page_in_memory)
attempt('files without end', lambda: none_of(mounts_without_end()))
for path in targets['secrets']:
    attempt('seeing %s of the host' % path, lambda: seen(path))

neighbour = targets['neighbour']
attempt("another sandbox's loopback", lambda: connect(socket.AF_INET, ('127.0.0.1', neighbour['port'])))
attempt("another sandbox's abstract sockets", lambda: connect(socket.AF_UNIX, '\0' + neighbour['name']))
attempt("another sandbox's shared memory", lambda: None if libc.shmget(neighbour['key'], 0, 0) >= 0 else none_of([]))
attempt("another sandbox's locks on files of the root", lambda: none_of(locked_by_the_neighbour('files')))
attempt("another sandbox's locks on devices", lambda: none_of(locked_by_the_neighbour('devices')))
for place in OWN_PLACES[:3]:
    attempt("another sandbox's %s" % place, lambda: seen(place + '/' + neighbour['name']))

with open('/proc/self/status') as file:
    status = dict(line.rstrip('\n').split(':\t', 1) for line in file if ':\t' in line)
for name, wanted in (('CapEff', 0), ('CapPrm', 0), ('CapBnd', 0), ('CapAmb', 0)):
    value = status.get(name, '0')  # gVisor has fewer
    (refused if int(value, 16) == wanted else held_open)('capabilities (%s)' % name, value)
for attack, name, wanted in (('new privileges', 'NoNewPrivs', '1'), ('calls past seccomp', 'Seccomp', '2')):
    value = status.get(name, 'unknown').strip()
    (refused if value == wanted else held_open)(attack, '%s %s' % (name, value))
(refused if os.getuid() != 0 else held_open)('being root', os.getuid())

# Module → what it is called; and what a model would do without if it were not told of it.
PACKAGES = {
    'numpy': 'numpy', 'pandas': 'pandas', 'polars': 'polars', 'pyarrow': 'pyarrow', 'scipy': 'scipy', 'sympy': 'sympy',
    'sklearn': 'scikit-learn', 'statsmodels': 'statsmodels', 'matplotlib': 'matplotlib', 'seaborn': 'seaborn',
    'plotly': 'plotly', 'PIL': 'Pillow', 'cv2': 'opencv', 'openpyxl': 'openpyxl', 'xlsxwriter': 'XlsxWriter',
    'docx': 'python-docx', 'pptx': 'python-pptx', 'pypdf': 'pypdf', 'pdfplumber': 'pdfplumber', 'reportlab': 'reportlab',
    'requests': 'requests', 'httpx': 'httpx', 'yaml': 'PyYAML', 'lxml': 'lxml', 'bs4': 'beautifulsoup4', 'nltk': 'nltk',
}
PROGRAMS = {
    'bash': 'bash', 'git': 'git', 'jq': 'jq', 'rg': 'ripgrep', 'sqlite3': 'sqlite3', 'curl': 'curl',
    'pdftotext': 'pdftotext and pdftoppm (poppler)', 'qpdf': 'qpdf', 'tesseract': 'tesseract', 'convert': 'ImageMagick',
    'soffice': 'LibreOffice', 'pandoc': 'pandoc', 'ffmpeg': 'ffmpeg', 'gcc': 'gcc', 'unzip': 'unzip', 'zip': 'zip',
}
packages = [name for module, name in PACKAGES.items() if importlib.util.find_spec(module)]
inside = ['Python %s (%s)' % ('.'.join(platform.python_version_tuple()[:2]), ', '.join(packages) or 'standard library')]
node = shutil.which('node')
try:
    version = subprocess.run([node, '--version'], capture_output=True, text=True, timeout=10).stdout if node else ''
except (OSError, subprocess.TimeoutExpired):
    version = ''
inside.append('Node %s' % version.strip().lstrip('v').split('.')[0] if version else 'no JavaScript')
inside += [name for program, name in PROGRAMS.items() if shutil.which(program)]
# The binaries themselves: a distribution's wrapper scripts bring flags of their own.
browsers = [
    '/usr/lib/chromium/chromium-headless-shell',
    '/usr/lib/chromium/chromium',
    '/usr/lib/chromium-browser/chromium-browser',
    '/opt/google/chrome/chrome',
]
browser = next((path for path in browsers if os.access(path, os.X_OK)), None)
print(json.dumps({'attacks': attacks, 'inside': ', '.join(inside), 'browser': browser}))
