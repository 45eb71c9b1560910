/** The sandbox host: fencing, lifetimes of sandboxes, hosts and servers, and cleanup. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSandboxes } from '../../src/sandbox/open-sandboxes.ts'
import {
  cgroupsOf,
  DRIVER,
  hostPid,
  LIMITS,
  never,
  openWorld,
  processesWith,
  quiet,
  run,
  until,
  type World,
} from './fixture.ts'

let world: World
beforeAll(async () => {
  world = await openWorld({ maxOpen: 3, waitMs: 300 })
})
afterAll(() => world.close())

const spec = (interactionId: string, epoch: number) => ({ interactionId, epoch, lifetimeMs: 60_000, limits: LIMITS })

test('destroy resolves when no process and no control group is left, and is idempotent', async () => {
  const before = cgroupsOf(world.dataDir)
  const mark = `72.${process.pid}`
  const sandbox = await world.sandbox('gone')
  await run(sandbox, 'bash', `(setsid sleep ${mark} &); echo started`)
  const pending = run(sandbox, 'python', 'import time; time.sleep(600)')
  await until(() => processesWith(mark).length === 1)
  expect(await world.sandboxes.living()).toContain('gone')
  await Promise.all([sandbox.destroy(), sandbox.destroy()])
  expect(processesWith(mark)).toEqual([])
  expect(cgroupsOf(world.dataDir)).toEqual(before)
  expect(await world.sandboxes.living()).not.toContain('gone')
  expect((await pending).end).toEqual({ kind: 'lost' })
  await sandbox.destroy()
  await world.sandboxes.destroy('gone')
  await world.sandboxes.destroy('never was')
  expect((await run(sandbox, 'bash', 'true')).end).toEqual({ kind: 'lost' })
  await expect(sandbox.readFile('x', 1)).rejects.toMatchObject({ name: 'SandboxError', code: 'lost' })
})

test('a sandbox is fresh for each interaction', async () => {
  const [a, b] = [await world.sandbox('a'), await world.sandbox('b')]
  await a.writeFile('secret', Buffer.from('a'), 'write')
  await run(a, 'bash', 'echo a > /tmp/x; echo a > /dev/shm/x')
  expect((await run(b, 'bash', 'ls -A . /tmp /dev/shm; ps -e | wc -l')).output).not.toContain('x')
  expect((await b.list('.', { recursive: true, maxEntries: 10 })).entries).toEqual([
    { path: 'outputs', type: 'directory', size: 0 },
  ])
  await Promise.all([a.destroy(), b.destroy()])
})

test('a client with a higher epoch resumes the live sandbox, joins its step, and shuts out the old client', async () => {
  const old = await world.sandboxes.open(spec('moving', 1), never)
  expect(old.fresh).toBe(true)
  await run(old, 'python', 'x = 41')
  const request = {
    key: 'step-1',
    language: 'bash',
    code: 'echo begun; while [ ! -e go ]; do sleep 0.01; done; echo over',
    timeoutMs: 30_000,
  } as const
  const begun = Promise.withResolvers<void>()
  const first = old.exec(request, () => begun.resolve(), never)
  await begun.promise

  const next = await world.connect()
  const taken = await next.open(spec('moving', 2), never)
  expect(taken.fresh).toBe(false)
  const fragments: string[] = []
  const joined = taken.exec(request, (text) => void fragments.push(text), never)
  await taken.writeFile('go', Buffer.from(''), 'write')
  const result = await joined
  expect(result).toMatchObject({ output: 'begun\nover\n', end: { kind: 'exit', code: 0 } })
  expect(fragments.join('')).toBe('over\n')
  expect(await first).toEqual(result)
  expect((await run(taken, 'python', 'x + 1')).output).toBe('42\n')

  for (const refused of [
    run(old, 'bash', 'echo no'),
    old.writeFile('no', Buffer.from(''), 'write'),
    old.readFile('go', 1),
    old.list('.', { recursive: false, maxEntries: 1 }),
    old.destroy(),
    world.sandboxes.open(spec('moving', 1), never),
  ]) {
    await expect(refused).rejects.toMatchObject({ name: 'SandboxError', code: 'stale' })
  }
  await taken.destroy()
  await expect(world.sandboxes.open(spec('moving', 1), never)).rejects.toMatchObject({ code: 'stale' })
  await next.close()
})

test('at maxOpen, open waits and then fails with a remedy', async () => {
  const held = [await world.sandbox('1'), await world.sandbox('2'), await world.sandbox('3')]
  await expect(world.sandbox('4')).rejects.toMatchObject({
    name: 'SandboxError',
    code: 'unavailable',
    message: expect.stringContaining('raise sandbox.maxOpen'),
  })
  const abort = new AbortController()
  const given = world.sandboxes.open(spec('5', 1), abort.signal)
  abort.abort()
  await expect(given).rejects.toMatchObject({ code: 'unavailable' })
  const waiting = world.sandbox('6')
  await held[0]!.destroy()
  expect((await run(await waiting, 'bash', 'echo in')).output).toBe('in\n')
  await Promise.all(['2', '3', '6'].map((id) => world.sandboxes.destroy(id)))
})

test('warm sandboxes are each used once', async () => {
  const warm = await openWorld({ pool: 2 })
  try {
    const ids = ['a', 'b', 'c', 'd']
    for (const id of ids) {
      const sandbox = await warm.sandbox(id)
      expect((await run(sandbox, 'bash', `ls -A; echo ${id} > mine`)).output).toBe('outputs\n')
    }
    expect((await warm.sandboxes.living()).sort()).toEqual(ids)
  } finally {
    await warm.close()
  }
})

test('a warm sandbox, whose Python may have started already, behaves like a new one', async () => {
  const warm = await openWorld({ pool: 1 })
  try {
    await until(async () => (await warm.sandboxes.counts()).warm === 1)
    await new Promise((resolve) => setTimeout(resolve, 200)) // it is idle
    const sandbox = await warm.sandbox()
    await sandbox.setEnvironment({ PLACE: 'here', TMPDIR: '/workspace' })
    const code = 'import os, tempfile; (os.environ["PLACE"], tempfile.gettempdir(), os.system("echo $PLACE"))'
    const first = await run(sandbox, 'python', code)
    expect(first).toMatchObject({ output: "here\n('here', '/workspace', 0)\n", sessionRestarted: false })
    await sandbox.setEnvironment({ PLACE: 'there' })
    expect((await run(sandbox, 'python', 'os.environ["PLACE"]')).output).toBe("'here'\n")
    expect((await run(sandbox, 'bash', 'echo $PLACE')).output).toBe('there\n')
  } finally {
    await warm.close()
  }
})

test('if an opening fails, one of the waiting callers makes the sandbox, and the others get the same one', async () => {
  const narrow = await openWorld({ maxOpen: 3, waitMs: 60_000 })
  const occupants = await Promise.all([1, 2, 3].map((i) => narrow.sandbox(`occupant-${i}`)))
  const before = cgroupsOf(narrow.dataDir)
  const gone = new AbortController()
  // Requests of one client arrive in order: the first waits for room, the others for the first.
  const failing = narrow.sandboxes.open(spec('waited-for', 1), gone.signal)
  const waiting = [1, 2, 3].map(() => narrow.sandboxes.open(spec('waited-for', 1), never))
  // Answered after them, so all of them have arrived.
  await narrow.sandboxes.living()
  gone.abort()
  await expect(failing).rejects.toMatchObject({ code: 'unavailable' })
  await Promise.all(occupants.map((occupant) => occupant.destroy()))
  const opened = await Promise.all(waiting)
  expect(opened.filter(({ fresh }) => fresh)).toHaveLength(1)
  const left = cgroupsOf(narrow.dataDir)
  if (before && left) expect(left).toHaveLength(before.length / 3)
  await narrow.sandboxes.destroy('waited-for')
  expect(await narrow.sandboxes.living()).toEqual([])
  expect(cgroupsOf(narrow.dataDir) ?? []).toEqual([])
  await narrow.close()
})

const SMALL = { ...DRIVER, limits: LIMITS, pool: 0, maxOpen: 2, log: quiet }

describe('a host', () => {
  let own: World
  beforeAll(async () => {
    own = await openWorld({ graceMs: 1000 })
  })
  afterAll(() => own.close())

  test('is shared by two servers that start at once', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
    const options = { ...SMALL, dataDir }
    const both = await Promise.all([openSandboxes(options), openSandboxes(options)])
    await both[0]!.open(spec('shared', 1), never)
    expect(await both[1]!.living()).toEqual(['shared'])
    const pid = hostPid(dataDir)
    await both[0]!.close()
    expect(await both[1]!.living()).toEqual(['shared'])
    await both[1]!.destroy('shared')
    await both[1]!.close()
    expect(processesWith('host-main')).not.toContain(pid)
    rmSync(dataDir, { recursive: true })
  })

  test('with a live sandbox outlives its last server, for the next one that resumes the run', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
    const options = { ...SMALL, dataDir }
    const first = await openSandboxes(options)
    const sandbox = await first.open(spec('handed-over', 1), never)
    await sandbox.writeFile('kept.txt', Buffer.from('still here'), 'write')
    await first.close()
    const second = await openSandboxes(options)
    const taken = await second.open(spec('handed-over', 2), never)
    expect(taken.fresh).toBe(false)
    expect(Buffer.from(await taken.readFile('kept.txt', 100)).toString()).toBe('still here')
    await second.destroy('handed-over')
    await second.close()
    rmSync(dataDir, { recursive: true })
  })

  test('that hangs is killed with its sandboxes and replaced, by its server and by the next one', async () => {
    const hanging = await openWorld({ hangMs: 1500 })
    const mark = `74.${process.pid}`
    const sandbox = await hanging.sandbox('hangs')
    const lost = run(sandbox, 'bash', `sleep ${mark}`)
    await until(() => processesWith(mark).length > 0)
    const hung = hostPid(hanging.dataDir)
    process.kill(hung, 'SIGSTOP')
    expect((await lost).end).toEqual({ kind: 'lost' })
    await until(() => processesWith(mark).length === 0)
    expect((await run(await hanging.sandbox('after'), 'python', '1 + 1')).output).toBe('2\n')
    process.kill(hostPid(hanging.dataDir), 'SIGSTOP')
    const next = await hanging.connect()
    expect(await next.living()).toEqual([])
    expect(processesWith(hanging.dataDir)).not.toContain(hung)
    await hanging.close()
  })

  test('that dies takes its sandboxes and the running step with it, and the next open starts a new host', async () => {
    const mark = `73.${process.pid}`
    const sandbox = await own.sandbox('dies')
    const lost = run(sandbox, 'bash', `echo x; (setsid sleep ${mark} &); sleep ${mark}`)
    await until(() => processesWith(mark).length >= 2)
    process.kill(hostPid(own.dataDir), 'SIGKILL')
    expect((await lost).end).toEqual({ kind: 'lost' })
    await until(() => processesWith(mark).length === 0)
    await expect(sandbox.readFile('x', 1)).rejects.toMatchObject({ code: 'lost' })
    await sandbox.destroy()
    const again = await own.sandbox('dies')
    expect(again.fresh).toBe(true)
    expect((await run(again, 'bash', 'echo back')).output).toBe('back\n')
    expect(cgroupsOf(own.dataDir)?.length ?? 0).toBeLessThanOrEqual(3) // one a controller: the dead host's are swept
    await again.destroy()
  })

  test('with another program or other fixed settings is replaced when no other server uses it', async () => {
    const before = hostPid(own.dataDir)
    const tree = mkdtempSync(join(tmpdir(), 'errand-tree-'))
    mkdirSync(join(tree, 'usr/bin'), { recursive: true })
    writeFileSync(join(tree, 'usr/bin/python3'), '')
    await expect(own.connect({ rootfs: tree })).rejects.toThrow(/stop it first/)
    expect(hostPid(own.dataDir)).toBe(before)
    rmSync(tree, { recursive: true })
  })

  test('without a client ends after its grace time, with all its sandboxes', async () => {
    const mark = `74.${process.pid}`
    const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
    // A server that is killed: a process that opens a sandbox and gets SIGKILL.
    const script = `
import { openSandboxes } from ${JSON.stringify(join(import.meta.dirname, '../../src/sandbox/open-sandboxes.ts'))}
const limits = ${JSON.stringify(LIMITS)}, log = { debug() {}, info() {}, warn() {}, error() {} }, signal = new AbortController().signal
const sandboxes = await openSandboxes({ ...${JSON.stringify(DRIVER)}, dataDir: ${JSON.stringify(dataDir)}, limits, pool: 0, maxOpen: 2, log, graceMs: 3000 })
const sandbox = await sandboxes.open({ interactionId: 'orphan', epoch: 1, lifetimeMs: 60000, limits }, signal)
await sandbox.exec({ key: '1', language: 'bash', code: '(setsid sleep ${mark} &)', timeoutMs: 5000 }, () => {}, signal)
process.kill(process.pid, 'SIGKILL')
`
    const { spawnSync } = await import('node:child_process')
    expect(spawnSync(process.execPath, ['--input-type=module', '-e', script]).signal).toBe('SIGKILL')
    const pid = hostPid(dataDir)
    await until(() => processesWith(mark).length === 1)
    await until(() => processesWith(mark).length === 0)
    await until(() => !processesWith('host-main').includes(pid))
    expect(cgroupsOf(dataDir) ?? []).toEqual([])
    rmSync(dataDir, { recursive: true })
  })
})

test('a data directory with a long path works', async () => {
  const long = join(mkdtempSync(join(tmpdir(), 'errand-test-')), 'x'.repeat(120))
  mkdirSync(long)
  const sandboxes = await openSandboxes({ ...SMALL, dataDir: long })
  const sandbox = await sandboxes.open(spec('long', 1), never)
  expect((await run(sandbox, 'python', '1')).output).toBe('1\n')
  await sandboxes.close()
  rmSync(join(long, '..'), { recursive: true })
})

describe('an error at the start is a sentence', () => {
  const open = (more: object) => openSandboxes({ ...SMALL, dataDir: world.dataDir, ...more })

  test.each([
    ['bubblewrap', { rootfs: '/proc' }, /^sandbox.rootfs: \/proc has no usr\/bin\/python3/],
    ['docker', { dockerHost: 'unix:///none/docker.sock' }, /needs Docker, .* \/none\/docker.sock \(ENOENT\): install/],
    ['docker', { dockerHost: 'tcp://127.0.0.1:1' }, /^sandbox.dockerHost: tcp:.* is not the address of a unix socket/],
  ])('%s with %j', async (driver, what, sentence) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
    await expect(open({ dataDir, driver, ...what })).rejects.toThrow(sentence)
    expect(readFileSync(join(dataDir, 'sandbox/host.log'), 'utf8')).toContain('could not start')
    rmSync(dataDir, { recursive: true })
  })

  test('a state directory that others may write to', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
    mkdirSync(join(dataDir, 'sandbox'), { mode: 0o755 })
    await expect(open({ dataDir })).rejects.toThrow('mode 0700')
    rmSync(dataDir, { recursive: true })
  })
})
