"""Making an attack and noting whether it was refused."""

import ctypes
import errno
import json
import os
import platform
import socket

libc = ctypes.CDLL(None, use_errno=True)
attacks = []


def refused(name, detail):
    attacks.append({'name': name, 'refused': True, 'detail': str(detail)})


def held_open(name, detail):
    attacks.append({'name': name, 'refused': False, 'detail': str(detail)})


def attempt(name, action):
    """The action is the attack; an OSError is a refusal."""
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
    """As `syscall`, for calls that would change this process if they were allowed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        own = os.getpid()
        syscall(name, x86_64, aarch64, *arguments)
        if os.getpid() != own:
            os._exit(0)  # the child of a clone that was not refused
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


def send(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as sender:
        sender.settimeout(3)
        sender.sendto(b'x' * 64, address)
    return 'sent'


def none_of(found):
    """For an attack that looks for something: it was refused if nothing was found."""
    found = list(found)
    if not found:
        raise OSError(errno.ENOENT, 'none')
    return ', '.join(map(str, found[:5]))
