/**
 * The fork server. As root, all other sandbox tests run on forked cells, the self-test included. These tests show that the
 * cells share only read-only memory, and what happens when a template ends.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../src/sandbox/inside.ts'
import { cgroupsOf, hostPid, LIMITS, never, openWorld, processesWith, run, until, type World } from '../fixture.ts'
import { descriptorsOf, firstProcesses, isThere, sharedMemory, templates, usages } from './forks.ts'

const isRoot = process.getuid?.() === 0

test('the facts say how sandboxes are made here, and why', async () => {
  for (const forkServer of ['auto', 'off'] as const) {
    const world = await openWorld({ forkServer })
    const { made } = await world.sandboxes.facts()
    if (forkServer === 'off') expect(made).toBe('each by a bubblewrap of its own (sandbox.forkServer is off)')
    else if (isRoot) expect(made).toBe('forked from a template')
    else
      expect(made).toBe('each by a bubblewrap of its own (a fork-server needs root, for a host user to each sandbox)')
    await world.close()
  }
})

describe.runIf(isRoot)('forked sandboxes', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world.close())

  test('have their own descriptors and none of the template’s', async () => {
    const [one, other] = [await world.sandbox(), await world.sandbox()]
    const [first, second] = firstProcesses(world)
    for (const pid of [first!, second!]) {
      const found = descriptorsOf(pid)
      expect(found[0]).toMatch(/^socket:/)
      expect([found[1], found[2]]).toEqual([found[0], '/dev/null'])
      // Its epoll, and the pipe that wakes it on signals.
      expect(found.slice(3).map((target) => target.replace(/\d+/, ''))).toEqual([
        'anon_inode:[eventpoll]',
        'pipe:[]',
        'pipe:[]',
      ])
    }
    const own = (pid: number) => descriptorsOf(pid).filter((target) => /^(socket|pipe):/.test(target))
    const elsewhere = new Set([...own(second!), ...templates(world).flatMap(own)])
    expect(own(first!).filter((target) => elsewhere.has(target))).toEqual([])
    await one.destroy()
    await other.destroy()
  })

  test('have their own environment, and in a session the same descriptors as a cell that is started whole', async () => {
    const whole = await openWorld({ forkServer: 'off' })
    const code =
      'import os; (sorted(os.environ.items()), sorted(os.listdir("/proc/self/fd")), __import__("gc").isenabled())'
    const [forked, started] = [await world.sandbox(), await whole.sandbox()]
    const said = (await run(forked, 'python', code)).output
    expect(said).toBe((await run(started, 'python', code)).output)
    const { output } = await run(forked, 'bash', 'env | grep -v -e ^SHLVL= -e ^_= -e ^OLDPWD= -e ^LC_CTYPE= | sort')
    const expected = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${value}`)
    expect(output.trim().split('\n')).toEqual(expected.toSorted())
    const limits =
      'import resource; [resource.getrlimit(n) for n in range(16)], open("/proc/self/status").read().split("Cap")[1:]'
    const about = (text: string) => text.replace(/ctxt_switches.*?(?=\\n|')/g, '')
    expect(about((await run(forked, 'python', limits)).output)).toBe(
      about((await run(started, 'python', limits)).output),
    )
    await forked.destroy()
    await whole.close()
  })

  test('share no writable memory and no namespace', async () => {
    const [one, other] = [await world.sandbox(), await world.sandbox()]
    const parents = templates(world)
    const [first, second] = firstProcesses(world)
    for (const pid of [first!, second!]) {
      expect(sharedMemory(pid)).toEqual([])
    }
    for (const kind of ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup']) {
      const seen = [first!, second!, ...parents, process.pid].map((pid) => readlinkSync(`/proc/${pid}/ns/${kind}`))
      expect(new Set(seen).size, kind).toBe(seen.length)
    }
    const uids = [first!, second!, ...parents].map(
      (pid) => /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1],
    )
    expect(new Set(uids).size).toBe(uids.length)
    expect(uids.every((uid) => Number(uid) > 65_536)).toBe(true)
    await run(one, 'python', 'secret = "of the first"; import gc; gc.collect()')
    expect((await run(other, 'python', '"secret" in globals()')).output).toBe('False\n')
    const draws = await Promise.all(
      [one, other].map((sandbox) => run(sandbox, 'python', 'import random; random.random()')),
    )
    expect(draws[0]!.output).not.toBe(draws[1]!.output)
    await one.destroy()
    await other.destroy()
  })

  test('see nothing of the template: not its mounts, its door, its process', async () => {
    const sandbox = await world.sandbox()
    const code = `
import os, socket
def refused(action):
    try: action()
    except OSError: return True
    return False
mounts = open('/proc/self/mountinfo').read()
[os.getppid() > 0, os.listdir('/run'), 'door' in mounts, 'template' in mounts, mounts.count(' /proc '), mounts.count(' /dev/pts '),
 b'template' in b''.join(open(f'/proc/{pid}/comm', 'rb').read() for pid in os.listdir('/proc') if pid.isdigit()),
 os.uname().nodename, refused(lambda: os.kill(-1, 0) or os.kill(int(open('/proc/1/stat').read().split()[3]) or 10**6, 9)), refused(lambda: os.listdir('/run/errand/door'))]`
    expect((await run(sandbox, 'python', code)).output).toBe(
      "[True, ['errand'], False, False, 1, 1, False, 'sandbox', True, True]\n",
    )
    await sandbox.destroy()
  })

  test('a bomb in one affects neither the template nor another sandbox', async () => {
    const before = templates(world)
    const [bombed, neighbour] = [await world.sandbox(), await world.sandbox()]
    await run(neighbour, 'python', 'held = 42')
    await run(bombed, 'python', 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass', 1500)
    await run(bombed, 'python', 'blocks = []\nwhile True: blocks.append(bytearray(2**24))')
    await run(bombed, 'bash', 'kill -9 -1')
    expect((await run(neighbour, 'python', 'held')).output).toBe('42\n')
    const fresh = await world.sandbox()
    expect((await run(fresh, 'python', '40 + 2')).output).toBe('42\n')
    expect(templates(world)).toEqual(before)
    for (const sandbox of [bombed, neighbour, fresh]) await sandbox.destroy()
  })

  test('the memory of each is counted in its own group', async () => {
    const [one, other] = [await world.sandbox(), await world.sandbox()]
    const before = usages(world)
    if (before.length === 0) throw new Error('there are no control groups here, though these tests run as root')
    await run(one, 'python', 'block = b"x" * (96 * 2**20)')
    const grown = usages(world).map((bytes, i) => bytes - before[i]!)
    expect(grown.filter((bytes) => bytes >= 96 * 2 ** 20)).toHaveLength(1)
    expect(grown.filter((bytes) => bytes < 16 * 2 ** 20)).toHaveLength(1)
    await one.destroy()
    await other.destroy()
  })

  test('kill -9 of the template ends its sandboxes without a trace, and the next ones get another template', async () => {
    const [one, other] = [await world.sandbox('first'), await world.sandbox('second')]
    const mark = `7531.${process.pid}`
    await run(one, 'bash', `(setsid sleep ${mark} &)`)
    const before = templates(world)
    expect(before).toHaveLength(1)
    process.kill(before[0]!, 'SIGKILL')
    for (const sandbox of [one, other]) {
      await until(async () => (await run(sandbox, 'bash', 'echo alive')).end.kind === 'lost')
    }
    await until(() => processesWith(mark).length === 0)
    await until(async () => (await world.sandboxes.living()).length === 0)
    await until(() => cgroupsOf(world.dataDir)!.length === 0)
    const next = await world.sandbox('first')
    expect(next.fresh).toBe(true)
    expect((await run(next, 'python', '40 + 2')).output).toBe('42\n')
    expect(templates(world)).toHaveLength(1)
    expect(templates(world)).not.toEqual(before)
    await next.destroy()
  })

  test('a template makes a limited number of cells, which outlive its retirement', { timeout: 240_000 }, async () => {
    const first = templates(world)
    const kept = await world.sandbox('kept')
    await run(kept, 'python', 'held = 42')
    const launch = async (round: number) => {
      await world.sandboxes.open(
        { interactionId: `round-${round}`, epoch: 1, lifetimeMs: 60_000, limits: LIMITS },
        never,
      )
      await world.sandboxes.destroy(`round-${round}`)
    }
    const untilAnother = async (known: number[]) => {
      for (let round = 0; templates(world).every((pid) => known.includes(pid)); round += 20) {
        if (round > 300) throw new Error('the template is not replaced')
        await Promise.all(
          [0, 1, 2, 3].map(async (lane) => {
            for (let i = 0; i < 5; i++) await launch(round + 5 * lane + i)
          }),
        )
      }
    }
    await untilAnother(first)
    expect((await run(kept, 'python', 'held')).output).toBe('42\n')
    expect(templates(world)).toHaveLength(2)
    await kept.destroy()
    await until(() => templates(world).length === 1)
    const second = templates(world)
    expect(second).not.toEqual(first)
    // A template without cells ends as soon as its successor is ready.
    await untilAnother(second)
    await until(() => templates(world).length === 1)
  })

  test('when the host is killed, the template and its cells end', async () => {
    const own = await openWorld()
    const mark = `7532.${process.pid}`
    await run(await own.sandbox(), 'bash', `(setsid sleep ${mark} &)`)
    const [template] = templates(own)
    process.kill(hostPid(own.dataDir), 'SIGKILL')
    await until(() => processesWith(mark).length === 0)
    await until(() => !isThere(template!))
    await own.close()
  })
})
