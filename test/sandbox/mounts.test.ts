/** Mounted directories: read-only, with execute bits, and visible only in their sandbox. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { LIMITS, never, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
let tool: string
beforeAll(async () => {
  world = await openWorld()
  // Below a directory that only its owner may enter, like the data directory.
  chmodSync(world.dataDir, 0o700)
  const source = join(world.dataDir, 'shown here')
  mkdirSync(join(source, 'scripts'), { recursive: true, mode: 0o755 })
  tool = join(source, 'scripts/tool.sh')
  writeFileSync(tool, '#!/bin/sh\necho "ran as $(id -u)"\n', { mode: 0o755 })
  writeFileSync(join(source, 'note.txt'), 'a note\n', { mode: 0o644 })
  const other = join(world.dataDir, 'other')
  mkdirSync(other, { mode: 0o755 })
  writeFileSync(join(other, 'other.txt'), 'another\n', { mode: 0o644 })
  const mounts = [
    { source, target: '/skills/first' },
    { source: other, target: '/skills/second' },
  ]
  sandbox = await world.sandboxes.open(
    { interactionId: 'int_mounts', epoch: 1, lifetimeMs: 120_000, limits: LIMITS, mounts },
    never,
  )
})
afterAll(() => world.close())

test('a mounted directory can be read and executed', async () => {
  const code = 'cat /skills/first/note.txt /skills/second/other.txt; /skills/first/scripts/tool.sh; ls /skills'
  const { output } = await run(sandbox, 'bash', code)
  expect(output).toBe('a note\nanother\nran as 1000\nfirst\nsecond\n')
  expect(Buffer.from(await sandbox.readFile('/skills/first/note.txt', 1000)).toString()).toBe('a note\n')
})

test.each([
  ['written', 'echo changed > /skills/first/note.txt'],
  ['appended to', 'echo more >> /skills/first/scripts/tool.sh'],
  ['added to', 'touch /skills/first/new'],
  ['removed', 'rm -f /skills/first/note.txt'],
  ['made writable', 'chmod 777 /skills/first/note.txt'],
  ['mounted over', 'mount -o remount,rw /skills/first'],
  ['given a sibling', 'mkdir /skills/third'],
])('it cannot be %s', async (_what, code) => {
  const before = readFileSync(tool, 'utf8')
  const { end } = await run(sandbox, 'bash', code)
  expect(end).not.toEqual({ kind: 'exit', code: 0 })
  await expect(sandbox.writeFile('/skills/first/note.txt', Buffer.from('x'), 'write')).rejects.toThrow()
  expect(readFileSync(tool, 'utf8')).toBe(before)
  expect((await run(sandbox, 'bash', 'cat /skills/first/note.txt')).output).toBe('a note\n')
})

test('another sandbox sees nothing of it', async () => {
  const { output } = await run(await world.sandbox(), 'bash', 'ls /skills 2>&1')
  expect(output).toMatch(/No such file/)
})
