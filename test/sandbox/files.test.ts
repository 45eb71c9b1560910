/** Reading and writing files: only through the runner, atomically, and never through a link. */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { hostPid, LIMITS, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
  await run(
    sandbox,
    'bash',
    `mkdir -p d/e; echo plain > d/plain; ln -s /etc/passwd link; ln -s d dirlink; ln -s nowhere dangling
mkfifo fifo; python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("sock")'; printf x > $'bad\\xff'`,
  )
})
afterAll(() => world.close())

const MIB = 1024 * 1024

/** `VmRSS`: current memory; `VmHWM`: its peak. */
function residentKiB(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)![1])
}

const text = async (path: string) => Buffer.from(await sandbox.readFile(path, 1000)).toString()

test('a written file can be read; parents are created, and its mode is kept when it is written again', async () => {
  await sandbox.writeFile('new/deep/run.sh', Buffer.from('echo one\n'), 'write')
  expect(await text('new/deep/run.sh')).toBe('echo one\n')
  await run(sandbox, 'bash', 'chmod 755 new/deep/run.sh')
  await sandbox.writeFile('/workspace/new/./deep/run.sh', Buffer.from('#!/bin/sh\necho two\n'), 'write')
  expect((await run(sandbox, 'bash', 'new/deep/run.sh; ls -A new/deep')).output).toBe('two\nrun.sh\n')
})

test('append adds to the end, and creates a missing file', async () => {
  await sandbox.writeFile('log', Buffer.from('a'), 'append')
  await sandbox.writeFile('log', Buffer.from('b'), 'append')
  expect(await text('log')).toBe('ab')
})

test('an empty file, a name with spaces and an emoji are files like any other', async () => {
  await sandbox.writeFile('sp ace/📄.txt', new Uint8Array(), 'write')
  expect((await sandbox.readFile('sp ace/📄.txt', 0)).byteLength).toBe(0)
})

describe('what cannot be read', () => {
  test.each([
    ['missing', 'not_found'],
    ['d/plain/x', 'not_a_file'],
    ['d', 'not_a_file'],
    ['.', 'not_a_file'],
    ['/', 'not_a_file'],
    ['link', 'not_a_file'],
    ['dangling', 'not_a_file'],
    ['dirlink/plain', 'denied'],
    ['fifo', 'not_a_file'],
    ['sock', 'not_a_file'],
    ['/dev/null', 'denied'],
    ['/proc/1/environ', 'denied'],
    ['/proc/self/mem', 'denied'],
    ['/run/errand/session.sh', 'denied'],
    ['../etc/passwd', 'invalid_path'],
    ['d/../d/plain', 'invalid_path'],
    ['d/\0/x', 'invalid_path'],
    ['', 'invalid_path'],
    ['\ud800', 'invalid_path'],
    ['x'.repeat(300), 'invalid_path'],
    [`${'y/'.repeat(2100)}z`, 'invalid_path'],
  ])('%j is %s', async (path, code) => {
    await expect(sandbox.readFile(path, 1000)).rejects.toMatchObject({ name: 'SandboxError', code })
  })

  test('a file over the cap is too large, one of its size is not', async () => {
    await sandbox.writeFile('ten', Buffer.from('0123456789'), 'write')
    expect((await sandbox.readFile('ten', 10)).byteLength).toBe(10)
    await expect(sandbox.readFile('ten', 9)).rejects.toMatchObject({ code: 'too_large' })
  })
})

test('absolute paths read the read-only root and follow its own links', async () => {
  expect(await text('/etc/passwd')).toContain('errand:x:1000')
  expect((await sandbox.readFile('/bin/bash', 10_000_000)).byteLength).toBeGreaterThan(100_000)
})

describe('what cannot be written', () => {
  test.each([
    ['/etc/passwd', 'denied'],
    ['/usr/x', 'denied'],
    ['/x', 'denied'],
    ['/dev/shm/x', 'denied'],
    ['/workspace', 'not_a_file'],
    ['d', 'not_a_file'],
    ['d/plain/x', 'not_a_file'],
    ['link', 'not_a_file'],
    ['fifo', 'not_a_file'],
    ['dirlink/x', 'denied'],
    ['../x', 'invalid_path'],
    ['a\0b', 'invalid_path'],
    ['', 'invalid_path'],
  ])('%j is %s', async (path, code) => {
    await expect(sandbox.writeFile(path, Buffer.from('x'), 'write')).rejects.toMatchObject({
      name: 'SandboxError',
      code,
    })
    await expect(sandbox.writeFile(path, Buffer.from('x'), 'append')).rejects.toMatchObject({ code })
  })

  test('a write that runs out of space keeps the old content and leaves no temporary file', async () => {
    await sandbox.writeFile('whole', Buffer.from('old'), 'write')
    const tooMuch = Buffer.alloc((LIMITS.workspaceMiB + 1) * 1024 * 1024)
    await expect(sandbox.writeFile('whole', tooMuch, 'write')).rejects.toMatchObject({ code: 'no_space' })
    await expect(sandbox.writeFile('whole', tooMuch, 'append')).rejects.toMatchObject({ code: 'no_space' })
    expect(await text('whole')).toBe('old')
    expect((await run(sandbox, 'bash', 'ls -A | grep -c errand || true')).output).toBe('0\n')
  })
})

test('a listing is sorted, follows no link, and marks entries that are neither file nor directory', async () => {
  const { entries, more } = await sandbox.list('.', { recursive: true, maxEntries: 1000 })
  expect(more).toBe(false)
  const paths = entries.map(({ path }) => path)
  expect(paths).toEqual([...paths].sort())
  const types = Object.fromEntries(entries.map(({ path, type }) => [path, type]))
  expect(types).toMatchObject({
    d: 'directory',
    'd/e': 'directory',
    'd/plain': 'file',
    link: 'other',
    dirlink: 'other',
    fifo: 'other',
    sock: 'other',
    outputs: 'directory',
    'bad?': 'other',
  })
  expect(paths.filter((path) => path.startsWith('dirlink/'))).toEqual([])
  expect(entries.find(({ path }) => path === 'd/plain')!.size).toBe(6)
  expect(await sandbox.list('d', { recursive: false, maxEntries: 2 })).toEqual({
    entries: [
      { path: 'e', type: 'directory', size: 0 },
      { path: 'plain', type: 'file', size: 6 },
    ],
    more: false,
  })
  const first = await sandbox.list('.', { recursive: true, maxEntries: 3 })
  expect(first).toEqual({ entries: expect.objectContaining({ length: 3 }), more: true })
  await expect(sandbox.list('dirlink', { recursive: true, maxEntries: 3 })).rejects.toMatchObject({ code: 'denied' })
  await expect(sandbox.list('nothing', { recursive: true, maxEntries: 3 })).rejects.toMatchObject({ code: 'not_found' })
})

test('a listing is truncated at 4 MiB even with long paths, and takes little of the host’s memory', async () => {
  const crowded = await world.sandbox('crowded', { ...LIMITS, files: 20_500 })
  const make = `
import os
os.chdir('outputs')
for _ in range(15): os.mkdir('d' * 250); os.chdir('d' * 250)
for i in range(20000): open('f%06d' % i + 'x' * 240, 'w').close()
`
  expect((await run(crowded, 'python', make, 50_000)).end).toEqual({ kind: 'exit', code: 0 })
  const host = hostPid(world.dataDir)
  writeFileSync(`/proc/${host}/clear_refs`, '5') // resets the peak
  const before = residentKiB(host, 'VmRSS')
  const { entries, more } = await crowded.list('outputs', { recursive: true, maxEntries: 20_000 })
  expect(more).toBe(true)
  expect(entries.length).toBeGreaterThan(1_000)
  expect(Buffer.byteLength(JSON.stringify(entries))).toBeLessThan(4 * MIB)
  expect(residentKiB(host, 'VmHWM') - before).toBeLessThan(48 * 1024)
  await crowded.destroy()
})

test('100 MiB can be written and read while steps run', async () => {
  const large = await world.sandbox('large', { ...LIMITS, workspaceMiB: 128, memoryMiB: 512 })
  const bytes = Buffer.alloc(100 * 1024 * 1024)
  for (let at = 0; at < bytes.length; at += 4096) bytes.writeUInt32LE(at, at)
  let writing = true
  const written = large.writeFile('big', bytes, 'write').finally(() => {
    writing = false
  })
  let steps = 0
  while (writing) {
    expect((await run(large, 'bash', 'echo between')).output).toBe('between\n')
    steps++
  }
  await written
  expect(steps).toBeGreaterThan(2)
  const [back, step] = await Promise.all([large.readFile('big', bytes.length), run(large, 'bash', 'echo meanwhile')])
  expect(bytes.equals(back)).toBe(true)
  expect(step.output).toBe('meanwhile\n')
  await large.destroy()
})

describe('a file that is read in chunks', () => {
  test('waits for a slow reader, and is complete', async () => {
    await run(sandbox, 'python', `open('long.bin', 'wb').write(bytes(range(256)) * ${16 * 4096})`)
    let size = 0
    const pieces: number[] = []
    for await (const piece of sandbox.openFile('long.bin', 16 * MIB)) {
      for (let i = 0; i < piece.length; i += 4099) expect(piece[i]).toBe((size + i) % 256)
      size += piece.length
      pieces.push(piece.length)
      // Other requests are answered meanwhile: the window limits the chunks in flight.
      if (pieces.length === 2) expect(await text('d/plain')).toBe('plain\n')
    }
    expect(size).toBe(16 * MIB)
    expect(Math.max(...pieces)).toBeLessThanOrEqual(MIB)
  })

  test('can be abandoned in the middle, and read again', async () => {
    for (let time = 0; time < 20; time++) {
      for await (const _ of sandbox.openFile('long.bin', 16 * MIB)) break
    }
    expect((await sandbox.readFile('long.bin', 16 * MIB)).length).toBe(16 * MIB)
  })

  test('that grows beyond `maxBytes` fails as too large, at any point', async () => {
    const pieces = sandbox.openFile('long.bin', 17 * MIB)[Symbol.asyncIterator]()
    await pieces.next()
    await run(sandbox, 'bash', `head -c ${2 * MIB} /dev/zero >> long.bin`)
    const end = async () => {
      while (!(await pieces.next()).done);
    }
    await expect(end()).rejects.toMatchObject({ code: 'too_large' })
  })

  test('that shrinks ends early', async () => {
    const pieces = sandbox.openFile('long.bin', 32 * MIB)
    let size = 0
    for await (const piece of pieces) {
      if (size === 0) await run(sandbox, 'bash', `truncate -s ${6 * MIB} long.bin`)
      size += piece.length
    }
    expect(size).toBe(6 * MIB)
  })

  test('fails as `readFile` does', async () => {
    const first = (path: string, max: number) => sandbox.openFile(path, max)[Symbol.asyncIterator]().next()
    await expect(first('nothing', 10)).rejects.toMatchObject({ code: 'not_found' })
    await expect(first('fifo', 10)).rejects.toMatchObject({ code: 'not_a_file' })
    await expect(first('d/plain', 2)).rejects.toMatchObject({ code: 'too_large' })
  })
})
