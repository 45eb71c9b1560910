/** Bombs of every kind: each is stopped at its limit, is reported with the limit's name, and leaves a working sandbox. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Language, Sandbox } from '../../src/sandbox/port.ts'
import { LIMITS, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

const bomb = (language: Language, code: string, timeoutMs?: number) => run(sandbox, language, code, timeoutMs)
const alive = async () => expect((await bomb('bash', 'echo alive')).output).toBe('alive\n')

test('memory', async () => {
  const code = 'blocks = []\nwhile True: blocks.append(bytearray(16 * 2**20))'
  const { end, output, hits } = await bomb('python', code)
  if (await limitsMemory()) expect(end).toEqual({ kind: 'memory_limit', limitMiB: LIMITS.memoryMiB })
  else {
    expect(output).toContain('MemoryError')
    expect(hits).toEqual([{ kind: 'process_memory', mebibytes: expect.any(Number) }])
  }
  await alive()
})

test('memory, by a process of the step alone', async () => {
  const code = `(python3 -c "b = bytearray(2**33)" 2>/dev/null; python3 -c "b = []
while True: b.append(bytearray(2**24))"); true`
  const { end, hits } = await bomb('bash', code)
  expect(end).toEqual({ kind: 'exit', code: 0 })
  if (await limitsMemory()) expect(hits).toEqual([{ kind: 'memory', mebibytes: LIMITS.memoryMiB }])
  await alive()
})

test('memory held by files is reported as the memory limit, whether or not the sandbox ends with it', async () => {
  if (!(await limitsMemory())) return
  const large = await world.sandbox('large', { ...LIMITS, memoryMiB: 128, workspaceMiB: 512 })
  const { end } = await run(large, 'bash', 'while :; do head -c 1M /dev/zero >> big; done')
  expect(end).toMatchObject({ kind: 'memory_limit', limitMiB: 128 })
  await large.destroy()
})

const ALIVE = { bash: 'echo alive', python: 'print("alive")', javascript: 'console.log("alive")' }

test.each([
  ['bash', 'for i in $(seq 100); do sleep 300 & done; wait', 2000],
  ['python', 'import subprocess\nfor _ in range(100): subprocess.Popen(["sleep", "300"])', undefined],
  [
    'python',
    'import threading, time\nfor _ in range(100): threading.Thread(target=time.sleep, args=[300], daemon=True).start()',
    undefined,
  ],
  [
    'javascript',
    'for (let i = 0; i < 100; i++) require("child_process").spawn("sleep", ["300"])\nawait new Promise((done) => setTimeout(done, 1000))',
    undefined,
  ],
] as const)('processes and threads in %s: %s', async (language, code, timeoutMs) => {
  const own = await world.sandbox()
  const { hits } = await run(own, language, code, timeoutMs)
  expect(hits).toEqual([{ kind: 'processes', count: LIMITS.pids }])
  expect((await run(own, language, ALIVE[language])).output).toMatch(/alive\n$/)
  await own.destroy()
})

test('a fork bomb that swallows every error', async () => {
  const own = await world.sandbox()
  const code = 'import os, time\nwhile True:\n  try:\n    if os.fork() == 0: time.sleep(1)\n  except OSError: pass'
  const { end, hits } = await run(own, 'python', code, 2000)
  expect(end).toEqual({ kind: 'timeout', afterMs: 2000 })
  expect(hits).toContainEqual({ kind: 'processes', count: LIMITS.pids })
  expect((await run(own, 'bash', 'echo alive')).output).toBe('alive\n')
  await own.destroy()
})

test.each(['/workspace', '/tmp', '/dev/shm'])('the disk: %s', async (place) => {
  const { end, output, hits } = await bomb('bash', `head -c 200M /dev/zero > ${place}/big`)
  expect(end).toEqual({ kind: 'exit', code: 1 })
  expect(output).toContain('No space left on device')
  expect(hits).toEqual([{ kind: 'space', place, mebibytes: expect.any(Number) }])
  if (place === '/workspace') {
    expect(hits![0]).toMatchObject({ mebibytes: LIMITS.workspaceMiB })
    await expect(sandbox.writeFile('more', Buffer.alloc(2 ** 20), 'write')).rejects.toMatchObject({
      code: 'no_space',
      message: `more: no space is left: /workspace holds ${LIMITS.workspaceMiB} MiB.`,
    })
  }
  await bomb('bash', `rm ${place}/big`)
  await alive()
})

test('a disk that was full during the step', async () => {
  const code = 'head -c 200M /dev/zero > big; rm big'
  expect((await bomb('bash', code)).hits).toEqual([
    { kind: 'room', mebibytes: LIMITS.workspaceMiB, files: LIMITS.files },
  ])
})

test.each(['/workspace', '/tmp', '/dev/shm'])('files without end: %s', async (place) => {
  const fill = `
import os
made = []
for i in range(${LIMITS.files} + 1):
    os.close(os.open(f'${place}/file-{i}', os.O_CREAT | os.O_WRONLY))
    made.append(f'${place}/file-{i}')`
  const { end, output, hits } = await bomb('python', fill)
  expect(end).toEqual({ kind: 'exit', code: 1 })
  expect(output).toContain('No space left on device')
  expect(hits).toEqual([{ kind: 'files', place, count: expect.any(Number) }])
  if (place === '/workspace') {
    expect(hits![0]).toMatchObject({ count: LIMITS.files })
    await expect(sandbox.writeFile('more', Buffer.from(''), 'write')).rejects.toMatchObject({
      code: 'no_space',
      message: `more: /workspace holds ${LIMITS.files.toLocaleString('en')} files, as many as it may.`,
    })
  }
  await bomb('python', 'for path in made: os.unlink(path)')
  await alive()
})

test('file descriptors', async () => {
  const { output, hits } = await bomb('python', 'held = []\nwhile True: held.append(open("/dev/null"))')
  expect(output).toContain('Too many open files')
  expect(hits).toEqual([{ kind: 'open_files', count: 1024 }])
  await bomb('python', 'held.clear()')
  await alive()
})

test('output without end', async () => {
  const { output, end, truncated } = await bomb('bash', 'yes', 1500)
  expect([end, truncated]).toEqual([{ kind: 'timeout', afterMs: 1500 }, true])
  expect(output).toMatch(/^(y\n)+\n\[… [\d,]+ bytes of output cut here …\]\n(y\n?)+$/)
  expect(Buffer.byteLength(output)).toBeLessThanOrEqual(LIMITS.outputBytes)
  await alive()
})

test('a step that times out while it is throttled reports the processor limit', async () => {
  const slow = await world.sandbox('slow', { ...LIMITS, cpus: 0.1 })
  const { end, hits } = await run(slow, 'bash', 'while :; do :; done & while :; do :; done', 1500)
  expect(end.kind).toBe('timeout')
  if ((await world.sandboxes.facts()).enforced.some((fact) => fact.startsWith('processor'))) {
    expect(hits).toEqual([{ kind: 'processor', cores: 0.1 }])
  }
  await slow.destroy()
})

test('a sandbox beside a bombed one goes on working', async () => {
  const [bombed, neighbour] = [await world.sandbox('bombed'), await world.sandbox('neighbour')]
  await neighbour.writeFile('kept', Buffer.from('whole'), 'write')
  const bombs = [
    ['python', 'blocks = []\nwhile True: blocks.append(bytearray(16 * 2**20))'],
    ['bash', 'bomb() { bomb | bomb & }; bomb; sleep 5'],
    ['bash', 'yes'],
    ['python', 'i = 0\nwhile True:\n  open(f"f{i}", "w"); i += 1'],
    ['bash', 'cat /dev/zero > big'],
  ] as const
  let going = true
  const falling = (async () => {
    for (const [language, code] of bombs) await run(bombed, language, code, 1500)
    going = false
  })()
  let answers = 0
  while (going) {
    answers++
    expect(await run(neighbour, 'bash', `echo ${answers}; cat kept`)).toMatchObject({
      output: `${answers}\nwhole`,
      end: { kind: 'exit', code: 0 },
    })
    expect(Buffer.from(await neighbour.readFile('kept', 10)).toString()).toBe('whole')
  }
  await falling
  expect(answers).toBeGreaterThan(0)
  expect((await run(bombed, 'bash', 'rm -rf *; echo alive')).output).toMatch(/alive\n$/)
  await Promise.all([bombed.destroy(), neighbour.destroy()])
})

async function limitsMemory(): Promise<boolean> {
  const { enforced } = await world.sandboxes.facts()
  return enforced.some((fact) => fact.startsWith('memory:'))
}
