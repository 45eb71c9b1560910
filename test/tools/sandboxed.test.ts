/** The tools on a real sandbox: results that the model gets. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ToolName } from '../../src/domain/agent.ts'
import type { Sandbox } from '../../src/sandbox/port.ts'
import type { ToolContext } from '../../src/tools/port.ts'
import { createTools } from '../../src/tools/tools.ts'
import { openWorld, type World } from '../sandbox/fixture.ts'
import { contextOn } from './memory-sandbox.ts'

const tools = createTools()
let world: World
let sandbox: Sandbox
let calls = 0

beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

async function run(name: ToolName, args: Record<string, unknown>, overrides: Partial<ToolContext> = {}) {
  const { output } = await tools.get(name)!.run(args, contextOn(sandbox, { key: `t${++calls}`, ...overrides }))
  return output
}

test('a session keeps its state, shows the last expression, and explains failures', async () => {
  await run('code_execution', { code: 'x = 20' })
  expect(await run('code_execution', { code: 'x + 22' })).toBe('42')
  expect(await run('code_execution', { code: 'raise ValueError("no")' })).toMatch(
    /ValueError: no\n\[It ended with exit code 1 /,
  )
  expect(await run('code_execution', { code: 'y = 1' })).toBe('[It printed nothing.]')
  expect(await run('code_execution', { code: 'echo $((6 * 7)); exit 3', language: 'bash' })).toMatch(
    /^42\n\[It ended with exit code 3/,
  )
})

test('a step is stopped when the run’s time is over, and the result reports the lost session', async () => {
  const stopped = await run('code_execution', { code: 'import time; time.sleep(60)' }, { remainingMs: () => 500 })
  expect(stopped).toMatch(/\[It was stopped after 0\.5 s/)
  const next = await run('code_execution', { code: 'print("x" in globals())' })
  expect(`${stopped}\n${next}`).toContain('The python session was restarted')
  expect(next).toMatch(/^False/)
})

test('a step that exceeds the memory limit ends, and the result names the limit', async () => {
  const output = await run('code_execution', {
    code: 'x = bytearray(2_000_000_000)\nfor i in range(0, len(x), 4096): x[i] = 1',
  })
  expect(output).toMatch(/256 MiB of memory|MemoryError/)
})

test('output is streamed, and output above the limit is truncated and marked', async () => {
  const heard: string[] = []
  const output = await run('code_execution', { code: 'print("x" * 100_000)' }, { onOutput: (text) => heard.push(text) })
  expect(heard.length).toBeGreaterThan(0)
  expect(output).toContain('its middle was left out')
  expect(Buffer.byteLength(output)).toBeLessThan(11_000)
})

test('a file can be written, read and processed by the three tools', async () => {
  expect(await run('file_write', { path: 'outputs/deep/a.txt', content: 'one\ntwo\n' })).toContain(
    'returned to the caller',
  )
  expect(
    await run('file_write', { path: 'outputs/deep/a.txt', mode: 'replace', find: 'two', content: 'zwei' }),
  ).toContain('line 2')
  expect(await run('file_write', { path: 'outputs/deep/a.txt', mode: 'append', content: 'drei\n' })).toContain(
    'Appended 5 bytes',
  )
  expect(await run('code_execution', { code: 'print(open("outputs/deep/a.txt").read())' })).toBe('one\nzwei\ndrei')
  expect(await run('file_read', { path: 'outputs/deep/a.txt', startLine: 2 })).toBe(
    '[outputs/deep/a.txt: lines 2-3 of 3, 14 bytes]\n2\tzwei\n3\tdrei',
  )
  expect(await run('file_read', { path: 'outputs' })).toContain('deep/')
})

test('paths outside the workspace, links and missing files are reported, never thrown', async () => {
  expect(await run('file_write', { path: '/etc/passwd', content: 'x' })).toMatch(/can't be written|not a usable path/)
  await run('code_execution', { code: 'import os; os.symlink("/etc/passwd", "link")' })
  expect(await run('file_read', { path: 'link' })).not.toContain('root:')
  expect(await run('file_read', { path: 'nowhere.txt' })).toContain(
    'There is no file `nowhere.txt`. The working directory contains: ',
  )
  expect(await run('file_write', { path: 'big', content: 'x'.repeat(1_000_000), mode: 'append' })).toContain(
    'Appended 1000000 bytes',
  )
  expect(
    await run('code_execution', { code: 'dd if=/dev/zero of=big bs=1M count=30 2>/dev/null; true', language: 'bash' }),
  ).toBeDefined()
  expect(await run('file_write', { path: 'more', content: 'x'.repeat(8_000_000) })).toMatch(
    /was not written: there is not enough space\. more: no space is left: \/workspace holds 32 MiB\./,
  )
})
