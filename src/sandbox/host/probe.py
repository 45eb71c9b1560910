# The self-test's attacks, run as a step inside a real sandbox. `targets` is put before it: JSON of {port, abstract, secrets}.
# Prints one JSON object: {"attacks": [{name, refused, detail}], "inside": "what code finds here"}.
import ctypes
import errno
import importlib.util
import json
import os
import platform
import shutil
import socket
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
        syscall(name, x86_64, aarch64, *arguments)
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


def write_to(path):
    with open(path, 'w') as file:
        file.write('x')
    return 'written'


def seen_in(path):
    names = os.listdir(path)
    if not names:
        raise OSError(errno.ENOENT, 'empty')
    return names


def read_from(path):
    with open(path, 'rb') as file:
        return '%d bytes read' % len(file.read(64))


buffer = ctypes.create_string_buffer(256)
in_child('mount', 165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)
in_child('a new user namespace (unshare)', 272, 97, 0x10000000)
in_child('a new mount namespace (unshare)', 272, 97, 0x20000)
syscall('a new user namespace (clone)', 56, 220, 0x10000000 | 17, 0, 0, 0, 0)
in_child('a new user namespace (clone3)', 435, 435, buffer, 64)
in_child('setns', 308, 268, 0, 0)
in_child('chroot', 161, 51, b'/tmp')
in_child('ptrace', 101, 117, 0, 0, 0, 0)
syscall('bpf', 321, 280, 0, buffer, 64)
syscall('perf_event_open', 298, 241, buffer, 0, -1, -1, 0)
syscall('keyctl', 250, 219, 0, -3, 1)
syscall('io_uring_setup', 425, 425, 4, buffer)
syscall('userfaultfd', 323, 282, 1)
syscall('process_vm_readv', 310, 270, 1, 0, 0, 0, 0, 0)
attempt('a vsock socket', lambda: socket.socket(40, socket.SOCK_STREAM).close())
attempt('a packet socket', lambda: socket.socket(17, socket.SOCK_RAW).close())
attempt("the host's loopback", lambda: connect(socket.AF_INET, ('127.0.0.1', targets['port'])))
attempt("the host's abstract sockets", lambda: connect(socket.AF_UNIX, '\0' + targets['abstract']))
attempt('a route to anywhere', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9)))
attempt("the runner's memory", lambda: read_from('/proc/1/mem'))
attempt("the runner's file descriptors", lambda: os.listdir('/proc/1/fd'))
attempt('writing to /usr', lambda: write_to('/usr/errand-probe'))
attempt('writing to /', lambda: write_to('/errand-probe'))
attempt('writing to /etc', lambda: write_to('/etc/errand-probe'))
attempt('writing to /dev', lambda: write_to('/dev/errand-probe'))
attempt('writing to /proc/sys', lambda: write_to('/proc/sys/kernel/core_pattern'))
attempt('/sys', lambda: seen_in('/sys'))
for path in targets['secrets']:
    attempt('seeing %s of the host' % path, lambda: os.stat(path))

with open('/proc/self/status') as file:
    status = dict(line.rstrip('\n').split(':\t', 1) for line in file if ':\t' in line)
for name, wanted in (('CapEff', 0), ('CapPrm', 0), ('CapBnd', 0), ('CapAmb', 0)):
    (refused if int(status[name], 16) == wanted else held_open)('capabilities (%s)' % name, status[name])
(refused if status['NoNewPrivs'].strip() == '1' else held_open)('new privileges', 'NoNewPrivs ' + status['NoNewPrivs'])
(refused if status['Seccomp'].strip() == '2' else held_open)('calls past seccomp', 'Seccomp ' + status['Seccomp'])
(refused if os.getuid() != 0 else held_open)('being root', os.getuid())

packages = [name for name in ('numpy', 'pandas', 'scipy', 'matplotlib', 'requests') if importlib.util.find_spec(name)]
inside = ['Python %s (%s)' % ('.'.join(platform.python_version_tuple()[:2]), ', '.join(packages) or 'standard library')]
node = shutil.which('node')
try:
    version = subprocess.run([node, '--version'], capture_output=True, text=True, timeout=10).stdout if node else ''
except (OSError, subprocess.TimeoutExpired):
    version = ''
inside.append('Node %s' % version.strip().lstrip('v').split('.')[0] if version else 'no JavaScript')
inside += [name for name in ('bash', 'git', 'jq', 'gcc', 'ffmpeg', 'pandoc', 'sqlite3') if shutil.which(name)]
print(json.dumps({'attacks': attacks, 'inside': ', '.join(inside)}))
