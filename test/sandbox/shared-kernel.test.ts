/**
 * S19: a hijacked sandbox takes all kernel resources that it can, while another sandbox and the host work. No machine-wide
 * counter moves by more than the sandbox's share, and nothing of the other sandbox can be seen or locked.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PENDING_SIGNALS, TERMINALS } from '../../src/sandbox/inside.ts'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { DRIVER, LIMITS, never, openWorld, run, type World } from './fixture.ts'

const MIB = 1024 * 1024
const PAGE = 4096

let world: World
let attacker: Sandbox
let neighbor: Sandbox
beforeAll(async () => {
  world = await openWorld()
  ;[attacker, neighbor] = [await world.sandbox(), await world.sandbox()]
})
afterAll(() => world.close())

async function python(sandbox: Sandbox, code: string): Promise<string> {
  const { output, end } = await run(sandbox, 'python', code, 60_000)
  expect([end, output]).toEqual([{ kind: 'exit', code: 0 }, expect.not.stringContaining('Traceback')])
  return output.trim()
}

/** Machine-wide counters, each in its own unit. */
function machine() {
  const read = (path: string) => readFileSync(path, 'utf8')
  const buffers = [...read('/proc/net/sockstat').matchAll(/^(?:TCP|UDP): .*mem (\d+)$/gm)].map(([, pages]) =>
    Number(pages),
  )
  return {
    socketMiB: (buffers.reduce((sum, pages) => sum + pages, 0) * PAGE) / MIB,
    aio: Number(read('/proc/sys/fs/aio-nr')),
    terminals: Number(read('/proc/sys/kernel/pty/nr')),
  }
}

/** Takes each kind of resource until it is refused, in processes that keep it. Prints the amount of each. */
const TAKE = `
import ctypes, fcntl, json, os, resource, select, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
held, took = [], {}

def take(name, step, most=100_000):
    count = 0
    try:
        while count < most:
            step()
            count += 1
    except (OSError, MemoryError): pass
    took[name] = count

def checked(result):
    if result == -1: raise OSError(ctypes.get_errno(), 'refused')
    return result

def udp():
    receiver, sender = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    held.append(receiver)
    receiver.bind(('127.0.0.1', 0))
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**30)
    sender.setblocking(False)
    for _ in range(100):
        try: sender.sendto(bytes(60_000), receiver.getsockname())
        except OSError: break
    sender.close()

def tcp():
    listener = socket.create_server(('127.0.0.1', 0))
    sender = socket.create_connection(listener.getsockname(), timeout=1)
    held.extend([sender, listener.accept()[0]])
    listener.close()
    sender.setblocking(False)
    try:
        while True: sender.send(bytes(60_000))
    except OSError: pass

def netlink():
    routes = socket.socket(16, socket.SOCK_RAW, 0)
    held.append(routes)

def aio():
    context = ctypes.c_ulong()
    checked(libc.syscall(206 if os.uname().machine == 'x86_64' else 0, 1000, ctypes.byref(context)))

def instances():
    held.append(os.fdopen(checked(libc.inotify_init1(0)), 'rb', closefd=True))

def queued():
    checked(libc.sigqueue(os.getpid(), 40, None))

def pipe():
    reader, writer = os.pipe()
    held.extend([os.fdopen(reader, 'rb'), os.fdopen(writer, 'wb')])
    fcntl.fcntl(writer, 1031, 2**20)

def timer():
    made = ctypes.c_int()
    checked(libc.timer_create(0, None, ctypes.byref(made)))

def page_cache():
    for folder, _, names in os.walk('/usr/share'):
        for name in names:
            with open(os.path.join(folder, name), 'rb') as file: file.read()
        if time.monotonic() > until: break

def names():
    for i in range(50_000):
        try: os.stat('/usr/none-%d' % i)
        except OSError: pass

until = time.monotonic() + 3
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
ends = []
for kinds in (
    [('udp', udp, 300)], [('tcp', tcp, 100)], [('netlink', netlink, 900)], [('aio', aio, 200)],
    [('terminals', lambda: held.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)), 900)],
    [('inotify', instances, 900)], [('signals', queued, 100_000)], [('timers', timer, 100_000)],
    [('pipes', pipe, 100)], [('epoll', lambda: held.append(select.epoll()), 900)],
    [('events', lambda: held.append(os.eventfd(0)), 900)], [('memfds', lambda: held.append(os.memfd_create('m')), 900)],
    [('shared memory', lambda: checked(libc.shmget(0, 4096, 0o1666)), 500), ('semaphores', lambda: checked(libc.semget(0, 100, 0o1666)), 500), ('message queues', lambda: checked(libc.msgget(0, 0o1666)), 500)],
    [('keys', lambda: checked(libc.syscall(248, b'user', b'k', b'x', 1, -3)), 100)],
    [('user namespaces', lambda: checked(libc.unshare(0x10000000)), 1), ('network namespaces', lambda: checked(libc.unshare(0x40000000)), 1)],
    [('page cache', page_cache, 1), ('names', names, 1)],
):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        for name, step, most in kinds: take(name, step, most)
        os.write(writer, json.dumps(took).encode() + b'\\n')
        os.close(writer)
        time.sleep(600)
        os._exit(0)
    os.close(writer)
    ends.append(os.fdopen(reader))
for end in ends: took.update(json.loads(end.readline() or '{}'))
print(json.dumps(took))
`

/** Needs one of each kind, and prints those that it does not get. */
const WORK = `
import ctypes, os, pty, select, signal, socket, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
def works(name, action):
    try: action()
    except OSError as error: print(name, 'failed:', error)

def own(result):
    if result == -1: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def echo():
    with socket.create_server(('127.0.0.1', 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        server, _ = listener.accept()
        got = []
        reader = threading.Thread(target=lambda: got.append(sum(len(part) for part in iter(lambda: server.recv(65536), b''))))
        reader.start()
        client.sendall(bytes(8 * 2**20))
        client.shutdown(socket.SHUT_WR)
        reader.join()
        server.close()
        if got != [8 * 2**20]: raise OSError(0, 'lost bytes')

def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.bind(('127.0.0.1', 0))
        receiver.settimeout(5)
        sender.sendto(b'x' * 50_000, receiver.getsockname())
        if len(receiver.recv(65536)) != 50_000: raise OSError(0, 'lost bytes')

works('a terminal', lambda: [os.close(fd) for fd in pty.openpty()])
works('inotify', lambda: os.close(own(libc.inotify_init1(0))))
works('TCP', echo)
works('UDP', datagram)
works('a timer', lambda: own(libc.timer_create(0, None, ctypes.byref(ctypes.c_int()))))
works('shared memory', lambda: own(libc.shmget(0, 4096, 0o1666)))
works('semaphores', lambda: own(libc.semget(0, 1, 0o1666)))
works('a message queue', lambda: own(libc.msgget(0, 0o1666)))
works('a pipe', lambda: [os.close(fd) for fd in os.pipe()])
works('epoll', lambda: select.epoll().close())
works('a process', lambda: subprocess.run(['true'], check=True))
`

test('a sandbox that takes all it can gets its share, and the other sandbox and the host get theirs', {
  timeout: 180_000,
}, async () => {
  const { notEnforced } = await world.sandboxes.facts()
  const sharesUser = notEnforced.some((fact) => fact.startsWith('kernel quotas'))
  expect(sharesUser).toBe(DRIVER.driver === 'docker')
  const greedy = await world.sandbox('greedy', { ...LIMITS, memoryMiB: 512 })
  try {
    const before = machine()
    const took = JSON.parse(await python(greedy, TAKE)) as Record<string, number>
    const after = machine()
    // It took some: a failing script would prove nothing.
    expect(took).toMatchObject({ epoll: 900, events: 900, memfds: 900, 'shared memory': 500, names: 1 })
    expect(took.udp).toBeGreaterThan(100)
    expect(took).toMatchObject({ netlink: 0, aio: 0, keys: 0, 'user namespaces': 0, 'network namespaces': 0 })
    expect(took.terminals).toBeLessThanOrEqual(TERMINALS)
    if (!sharesUser) expect(took.signals! + took.timers!).toBeLessThanOrEqual(PENDING_SIGNALS)
    // Twice the share, because this test may run on another driver at the same time.
    expect(after.aio - before.aio).toBeLessThan(10_000)
    expect(after.terminals - before.terminals).toBeLessThanOrEqual(2 * TERMINALS)
    expect(after.socketMiB - before.socketMiB).toBeLessThan(2 * (64 + 32))

    const failed = (await python(neighbor, WORK)).split('\n').filter(Boolean)
    expect(sharesUser ? failed.filter((line) => !QUOTAS.test(line)) : failed).toEqual([])
    watch(world.dataDir).close()
    expect(execFileSync('python3', ['-c', HOST_WORK], { encoding: 'utf8' })).toBe('0\n')
  } finally {
    await greedy.destroy()
  }
})

/** Quotas of one user: to the kernel all of Docker's containers are the same user. */
const QUOTAS = /^(inotify|a timer) failed/

const HOST_WORK = `
import ctypes, os, pty
for fd in pty.openpty(): os.close(fd)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(206 if os.uname().machine == 'x86_64' else 0, 100, ctypes.byref(ctypes.c_ulong())))`

const EVERYWHERE = `
import os
places = ['/', '/usr', '/usr/bin', '/usr/lib', '/etc', '/etc/passwd', '/etc/ld.so.cache', '/errand', '/errand/runner.py', '/errand/bin/node', '/dev', '/dev/null', '/dev/zero',
  '/dev/urandom', '/proc/self/exe', '/proc/cmdline', '/proc/locks', os.path.realpath('/usr/bin/python3'), os.path.realpath('/bin/sh'), os.path.realpath('/usr/bin/env')]
places += sorted({line.split()[-1] for line in open('/proc/self/maps') if '/usr/lib' in line})
`

test('programs and reads of another sandbox or the host raise no inotify event', async () => {
  await python(
    attacker,
    `${EVERYWHERE}
import ctypes, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
watcher = libc.inotify_init1(0o4000)
watched = {libc.inotify_add_watch(watcher, path.encode(), 0xfff): path for path in places}
def events():
    found, data = [], b''
    try: data = os.read(watcher, 2**20)
    except BlockingIOError: pass
    while data:
        number, mask, _, size = struct.unpack_from('iIII', data)
        found.append((watched[number], hex(mask), data[16:16 + size].rstrip(b'\\0')))
        data = data[16 + size:]
    return found
subprocess.run(['sh', '-c', 'env > /dev/null'])
print(len(events()) > 0, len(watched) > 15, events())`,
  ).then((output) => expect(output).toBe('True True []'))
  const ofStep = await python(attacker, 'events()') // events of the step itself
  const busy = `${EVERYWHERE}
import subprocess
for path in places:
    try: open(path, 'rb').read(10)
    except OSError: pass
subprocess.run(['sh', '-c', 'ls / /usr/bin /etc /errand /dev > /dev/null; env > /dev/null; python3 -c pass'])`
  await python(neighbor, busy)
  execFileSync('python3', ['-c', busy], { stdio: 'ignore' })
  expect(await python(attacker, 'events()')).toBe(ofStep)
})

test('locks on files affect no other sandbox', async () => {
  const lock = `${EVERYWHERE}
import fcntl
held, refused, seen = [], [], set()
for path in places:
    if os.path.exists(path) and os.stat(path)[1:3] in seen: continue # locked under another name
    seen.add(os.stat(path)[1:3] if os.path.exists(path) else None)
    # A program of the host's that is open for writing could not be started meanwhile.
    for mode in (os.O_RDONLY, os.O_RDWR) if path.startswith('/dev/') else (os.O_RDONLY,):
        try: held.append(os.open(path, mode | os.O_NONBLOCK))
        except OSError: continue
        try: fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: refused.append(path)
        try: fcntl.lockf(held[-1], (fcntl.LOCK_EX if mode == os.O_RDWR else fcntl.LOCK_SH) | fcntl.LOCK_NB, 1, 0, 0)
        except OSError: refused.append('a record of ' + path)
        if mode == os.O_RDONLY: fcntl.flock(held[-1], fcntl.LOCK_UN)
for fd in held:
    try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: pass
print(len(held) > 15, refused)`
  const host = () => execFileSync('python3', ['-c', lock], { encoding: 'utf8' })
  const before = host() // other processes may hold locks
  for (const sandbox of [attacker, neighbor]) expect(await python(sandbox, lock)).toBe('True []')
  expect(host()).toBe(before)
})

test('no counter shows other sandboxes, and no pid leads to another’s process', async () => {
  const code = `
import os
shown = []
for path in ('locks', 'interrupts', 'softirqs', 'vmstat', 'zoneinfo', 'buddyinfo', 'diskstats', 'schedstat', 'pressure/cpu', 'sys/fs/file-nr', 'sys/fs/inode-nr', 'sys/fs/dentry-state',
             'sys/fs/aio-nr', 'sys/kernel/pty/nr'):
    try:
        if open('/proc/' + path).read().strip(): shown.append(path)
    except OSError: pass
found = 0
for number in range(1, 4000):
    try: os.close(os.pidfd_open(number))
    except OSError: continue
    found += 1
[shown, found <= sum(name.isdigit() for name in os.listdir('/proc')) + 1]`
  await run(neighbor, 'bash', 'sleep 30 & flock -n outputs sleep 1')
  expect(await python(attacker, code)).toBe('[[], True]')
})

describe('the path of the server', () => {
  const PLACES = `import re; text = ''.join(open('/proc/self/' + name).read() for name in ('mountinfo', 'mounts', 'maps', 'cgroup'))`

  test('is not among the mounts', async () => {
    const mounts = await python(attacker, `${PLACES}\nprint(text)`)
    expect(mounts).toContain('/workspace')
    for (const path of [join(import.meta.dirname, '../..'), world.dataDir]) expect(mounts).not.toContain(path)
  })

  test.runIf(DRIVER.driver === 'bubblewrap')('nor with a mounted directory', async () => {
    const source = join(world.dataDir, 'shown')
    mkdirSync(source, { mode: 0o755 })
    writeFileSync(join(source, 'note'), 'a note\n', { mode: 0o644 })
    const spec = { interactionId: 'int_shown', epoch: 1, lifetimeMs: 120_000, limits: LIMITS }
    const sandbox = await world.sandboxes.open({ ...spec, mounts: [{ source, target: '/skills/one' }] }, never)
    const mounts = await python(sandbox, `${PLACES}\nprint(text, open('/skills/one/note').read())`)
    expect(mounts).toContain('a note')
    expect(mounts).not.toContain(world.dataDir)
    await sandbox.destroy()
  })
})
