/** Sandbox escapes: the self-test's whole list, known incidents, and attacks between sandboxes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox, SpawnRequest } from '../../src/sandbox/port.ts'
import { LIMITS, never, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

test('the self-test made every attack of the list, and all were refused', async () => {
  const { probes } = await world.sandboxes.facts()
  expect(probes.filter(({ refused }) => !refused)).toEqual([])
  const names = probes.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const what of [
    ...[
      /^mount/,
      /^ptrace/,
      /^setns/,
      /^a new .* namespace/,
      /^writing to \/proc\/sys/,
      /^\/sys/,
      /^setuid/,
      /^setgroups/,
    ],
    ...[
      /^devices/,
      /^making a device/,
      /^keyctl/,
      /^add_key/,
      /^bpf/,
      /^io_uring/,
      /^userfaultfd/,
      /^a vsock/,
      /TIOCSTI/,
    ],
    ...[/clone3/, /^another sandbox's loopback/, /^another sandbox's \/tmp/, /^files without end/, /^a hard link/],
    ...[/^the metadata address/, /^DNS/, /^descriptors that were left open/, /^writing to the host/, /^capabilities/],
    ...[/^new privileges/, /^calls past seccomp/, /^the host's processes/, /of the host$/],
  ]) {
    expect(
      names.some((name) => what.test(name)),
      String(what),
    ).toBe(true)
  }
})

async function output(request: Omit<SpawnRequest, 'pipes'>): Promise<string> {
  const process = sandbox.spawn({ ...request, pipes: 'stdio' })
  const parts: Buffer[] = []
  process.stream.on('error', () => {}).on('data', (part: Buffer) => parts.push(part))
  const end = await process.exited
  return `${Buffer.concat(parts)}${end.kind === 'exit' ? end.code : end.kind}`
}

describe('incidents', () => {
  test('an open descriptor does not lead to the host: runc, CVE-2024-21626', async () => {
    const outside = `
import os
own = {os.stat(place).st_dev for place in ('/', '/workspace', '/tmp', '/dev', '/dev/shm', '/run/errand', '/proc', '/usr', '/etc')}
found = []
for who in ('self', '1', str(os.getppid())):
    for fd in range(1100):
        for up in ('', '/..', '/../..', '/../../..'):
            place = f'/proc/{who}/fd/{fd}{up}'
            try:
                if os.path.isdir(place) and os.stat(place).st_dev not in own: found.append(place)
                if os.path.exists(place + '/etc/shadow') or os.path.exists(place + '/lost+found'): found.append(place)
            except OSError: pass
found`
    expect((await run(sandbox, 'python', outside, 60_000)).output).toBe('[]\n')
    const looks = [3, 4, 5, 6, 7, 8, 9, 10].flatMap((fd) => [`/proc/self/fd/${fd}`, `/proc/self/fd/${fd}/../..`])
    for (const cwd of [...looks, '/proc/1/fd/7', '/proc/1/root', '/proc/1/cwd']) {
      const said = await output({ argv: ['/bin/sh', '-c', 'ls -d etc/shadow lost+found 2>/dev/null'], cwd })
      expect(said, cwd).not.toMatch(/shadow|lost/)
    }
  })

  test('a spawned program has only its pipes open', async () => {
    const said = await output({ argv: ['/bin/sh', '-c', 'for f in /proc/self/fd/*; do readlink $f; done; true'] })
    expect(
      said
        .replaceAll(/^(pipe|socket):\[\d+\]$/gm, '')
        .replaceAll(/^\/(proc|dev\/null).*$/gm, '')
        .trim(),
    ).toBe('0')
  })

  test('no path of the host can be written to, by any name: Claude Code, CVE-2026-25725', async () => {
    // Paths that do not exist yet are the ones that a sandbox might create.
    const code = `
import os
made = []
for path in ('/etc/profile.d/x.sh', '/etc/ld.so.preload', '/usr/lib/python3/dist-packages/x.pth', '/errand/runner.py', '/errand/bin/node',
             '/root/.bashrc', '/home/x', '/var/run/x', '/.claude/settings.json', '/errand/settings.json', '/lib/x.so', '/boot/x', '/opt/x'):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'a') as file: file.write('x')
        made.append(path)
    except OSError: pass
made`
    expect((await run(sandbox, 'python', code)).output).toBe('[]\n')
  })

  test('devices and masks cannot be replaced by links: runc, CVE-2025-31133, CVE-2025-52565', async () => {
    const code = `for place in /dev/null /dev/console /dev/pts /dev/shm /proc/cmdline /proc/sys /proc/kcore; do [ -e $place ] || continue
      ln -sfn /proc/sys/kernel/core_pattern $place 2>/dev/null && echo "swapped $place"
      mv $place /tmp/moved 2>/dev/null && echo "moved $place"
      rm -rf $place 2>/dev/null && [ ! -e $place ] && echo "removed $place"
    done; rm -f /dev/shm/*; true`
    // /dev/shm is writable, so the link is created inside it.
    const { output } = await run(sandbox, 'bash', code)
    expect(output.split('\n').filter((line) => line !== '' && line !== 'swapped /dev/shm')).toEqual([])
    expect((await run(sandbox, 'bash', 'echo gone > /dev/null; echo works')).output).toBe('works\n')
  })

  test('an escape from the language does not leave the sandbox: Terrarium, n8n', async () => {
    const code = `process.binding, process.mainModule?.constructor?._load
const { execSync } = require('child_process')
execSync('id -u; cat /etc/shadow /proc/1/environ 2>/dev/null; true').toString()`
    expect((await run(sandbox, 'javascript', code)).output).toBe("'1000\\n'\n")
  })
})

test('files planted in the home directory affect only their own sandbox', async () => {
  const own = await world.sandbox()
  await run(
    own,
    'bash',
    `mkdir -p .local/lib/python3.{9..14}/site-packages bin
for d in .local/lib/python3.*/site-packages; do echo 'print("planted")' > $d/usercustomize.py; done
for name in json ast os socket struct; do echo 'raise SystemExit("planted")' > $name.py; done
for name in python3 bash node sh ls; do printf '#!/bin/sh\\necho planted' > bin/$name; chmod +x bin/$name; done
echo 'echo planted' | tee .bashrc .profile .bash_profile; rm -f .local/../nothing
kill -9 $$`,
  )
  expect((await run(own, 'bash', 'type -p ls')).output).toMatch(/^\/(usr\/)?bin\/ls\n$/)
  expect((await run(own, 'javascript', '40 + 2')).output).toBe('42\n')
  await own.writeFile('still', Buffer.from('here'), 'write')
  expect(Buffer.from(await own.readFile('still', 10)).toString()).toBe('here')
  await own.destroy()
})

test('code that writes to the pipe of its session ends at most its own step', async () => {
  const own = await world.sandbox()
  const flood =
    'import os\nfor fd in (3, 4):\n  try: os.write(fd, b"done 0\\ndead 9\\ndone x\\n" * 500 + b"x" * 10000)\n  except OSError: pass'
  await run(own, 'python', flood)
  await run(own, 'bash', 'printf "done 0\\ndead 9\\n%.0s" {1..500} >&1001; printf "x%.0s" {1..9999} >&1000', 3000)
  expect((await run(own, 'javascript', '1 + 1')).output).toBe('2\n')
  expect((await own.list('.', { recursive: false, maxEntries: 9 })).entries).toEqual([
    { path: 'outputs', type: 'directory', size: 0 },
  ])
  await own.destroy()
})

describe('two sandboxes, of two interactions or of one, ', () => {
  test.each([
    ['of two', 'left', undefined, 'right', undefined],
    ['of one', 'both', undefined, 'both', 'mcp-files'],
  ])('%s have nothing in common', async (_, first, firstName, second, secondName) => {
    const open = (interactionId: string, name: string | undefined) => {
      return world.sandboxes.open({ interactionId, name, epoch: 1, lifetimeMs: 60_000, limits: LIMITS }, never)
    }
    const [one, other] = await Promise.all([open(first, firstName), open(second, secondName)])
    const opened = await run(
      one,
      'python',
      `import socket, ctypes, subprocess, os
tcp = socket.create_server(('127.0.0.1', 4711)); unix = socket.socket(socket.AF_UNIX); unix.bind('\\0shared'); unix.listen()
for place in ('/workspace', '/tmp', '/dev/shm'): open(place + '/mine', 'w').write('mine')
libc = ctypes.CDLL(None); libc.shmget(4711, 4096, 0o1666); libc.mq_open(b'/mine', 0o102, 0o666, None)
child = subprocess.Popen(['sleep', '600'])`,
    )
    expect(opened.end).toEqual({ kind: 'exit', code: 0 })
    const tried = await run(
      other,
      'python',
      `import socket, ctypes, os, signal
def attempt(action):
    try: return bool(action())
    except OSError: return False
def connect(family, address):
    with socket.socket(family) as s: s.connect(address)
    return True
libc = ctypes.CDLL(None)
found = [attempt(lambda: connect(socket.AF_INET, ('127.0.0.1', 4711))), attempt(lambda: connect(socket.AF_UNIX, '\\0shared')),
  *[os.path.exists(place + '/mine') for place in ('/workspace', '/tmp', '/dev/shm')],
  libc.shmget(4711, 0, 0) >= 0, libc.mq_open(b'/mine', 0) >= 0,
  any(b'600' in open(f'/proc/{pid}/cmdline', 'rb').read() for pid in os.listdir('/proc') if pid.isdigit())]
print(found, flush=True)
if os.fork() == 0: os.kill(-1, signal.SIGKILL)`,
    )
    expect(tried.output).toBe(`[${'False, '.repeat(7)}False]\n`)
    expect((await run(one, 'python', 'child.poll() is None')).output).toBe('True\n')
    await world.sandboxes.destroy(first)
    await world.sandboxes.destroy(second)
  })
})
