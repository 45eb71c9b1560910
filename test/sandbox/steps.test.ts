/** Steps: streamed and capped output, idempotency keys, ends; no step can hang the sandbox or survive its kill. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { cgroupsOf, LIMITS, never, openWorld, processesWith, run, until, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

test('output is streamed while the step runs, and its fragments joined are the output', async () => {
  const fragments: string[] = []
  const seen = Promise.withResolvers<void>()
  const running = sandbox.exec(
    {
      key: 'stream',
      language: 'bash',
      code: 'echo first; while [ ! -e go ]; do sleep 0.01; done; echo last >&2',
      timeoutMs: 20_000,
    },
    (text) => {
      fragments.push(text)
      seen.resolve()
    },
    never,
  )
  await seen.promise
  expect(fragments).toEqual(['first\n'])
  await sandbox.writeFile('go', Buffer.from(''), 'write')
  const { output } = await running
  expect(output).toBe('first\nlast\n')
  expect(fragments.join('')).toBe(output)
})

test('output over the cap keeps its beginning and end, with a mark, and splits no character', async () => {
  const fragments: string[] = []
  const request = {
    key: 'flood',
    language: 'python',
    code: 'print("begin")\nfor _ in range(300000): print("ü", end="")\nprint("end")',
    timeoutMs: 20_000,
  } as const
  const { output, truncated } = await sandbox.exec(request, (text) => void fragments.push(text), never)
  expect(truncated).toBe(true)
  expect(output).toMatch(/^begin\nü+\n\[… [\d,]+ bytes of output cut here …\]\nü+end\n$/)
  expect(Buffer.byteLength(output)).toBeLessThanOrEqual(LIMITS.outputBytes)
  // Previews of later output may come in between.
  expect(fragments.filter((text) => !text.startsWith('\n… ')).join('')).toBe(output)
})

test('output up to the cap is complete', async () => {
  const { output, truncated } = await run(sandbox, 'python', `print("x" * ${LIMITS.outputBytes - 1})`)
  expect([output.length, truncated]).toEqual([LIMITS.outputBytes, false])
})

test('output that is not UTF-8 does not break a step', async () => {
  const { output, end } = await run(sandbox, 'bash', "printf 'a\\xff\\x00b'")
  expect(end).toEqual({ kind: 'exit', code: 0 })
  expect(output).toBe('a\ufffd\0b')
})

test('the same key twice runs once: the second gets the first result', async () => {
  const ask = () =>
    sandbox.exec(
      { key: 'once', language: 'bash', code: 'echo run >> log; wc -l < log', timeoutMs: 20_000 },
      () => {},
      never,
    )
  const first = await ask()
  expect(first.output).toBe('1\n')
  expect(await ask()).toEqual(first)
  expect((await run(sandbox, 'bash', 'wc -l < log')).output).toBe('1\n')
})

test('the same key while the step runs joins it', async () => {
  const ask = () =>
    sandbox.exec(
      {
        key: 'joined',
        language: 'bash',
        code: 'echo run >> joined; while [ ! -e on ]; do sleep 0.01; done; wc -l < joined',
        timeoutMs: 20_000,
      },
      () => {},
      never,
    )
  const both = [ask(), ask()]
  await sandbox.writeFile('on', Buffer.from(''), 'write')
  const [first, second] = await Promise.all(both)
  expect(first!.output).toBe('1\n')
  expect(second).toEqual(first)
})

test('a timeout kills the whole process tree, with daemons and processes that ignore SIGTERM, and reports the restart', async () => {
  const mark = `71.${process.pid}`
  const code = `trap "" TERM INT HUP
(trap "" TERM; setsid sleep ${mark}1 &)
setsid bash -c 'trap "" TERM; sleep ${mark}2 & sleep ${mark}3' &
echo started; sleep ${mark}4`
  await run(sandbox, 'bash', 'v=1')
  const result = await run(sandbox, 'bash', code, 700)
  expect(result).toMatchObject({ output: 'started\n', end: { kind: 'timeout', afterMs: 700 } })
  expect(processesWith(mark)).toEqual([])
  expect(await run(sandbox, 'bash', 'echo "[$v]"')).toMatchObject({ output: '[]\n', sessionRestarted: true })
})

test.each([
  ['python', 'bash'],
  ['bash', 'python'],
] as const)(
  'a %s session that began the sandbox: what it lost ends with its step, and with none of %s',
  async (first, other) => {
    const own = await world.sandbox()
    const mark = `72.${process.pid}`
    const daemon = `(setsid sleep ${mark} >/dev/null 2>&1 &)`
    const code = {
      bash: { start: daemon, stop: 'sleep 600' },
      python: { start: `import os; os.system(${JSON.stringify(daemon)})`, stop: 'import time; time.sleep(600)' },
    }
    // Bash does not wait for background processes, which may not have their name yet.
    const left = (count: number) => until(() => processesWith(mark).length === count)
    await run(own, first, code[first].start)
    await left(1)
    expect((await run(own, other, code[other].stop, 300)).end.kind).toBe('timeout')
    expect(processesWith(mark)).toHaveLength(1)
    await run(own, other, code[other].start)
    await left(2)
    expect((await run(own, first, code[first].stop, 300)).end.kind).toBe('timeout')
    expect(processesWith(mark)).toHaveLength(1)
    expect((await run(own, other, code[other].stop, 300)).end.kind).toBe('timeout')
    expect(processesWith(mark)).toEqual([])
    await own.destroy()
  },
)

test.each([
  [
    'python',
    'import os, time\nprint(os.getpid(), flush=True)\nwhile True:\n  try: time.sleep(1)\n  except BaseException: pass',
  ],
  ['javascript', 'console.log(process.pid); for (;;);'],
  ['bash', 'echo $$; while :; do :; done'],
] as const)('cancelling kills a %s step that will not end', async (language, code) => {
  const abort = new AbortController()
  const request = { key: `cancel-${language}`, language, code, timeoutMs: 60_000 }
  const { output, end } = await sandbox.exec(request, () => abort.abort(), abort.signal)
  expect(end).toEqual({ kind: 'cancelled' })
  expect(output).toMatch(/^\d+\n$/)
  expect((await run(sandbox, 'bash', `[ -e /proc/${output.trim()} ] && echo there || echo gone`)).output).toBe('gone\n')
})

test('a step that is canceled in the queue never runs, and the running step goes on', async () => {
  const abort = new AbortController()
  const first = run(sandbox, 'bash', 'while [ ! -e over ]; do sleep 0.01; done; echo done')
  const second = sandbox.exec(
    { key: 'waiting', language: 'bash', code: 'touch ran', timeoutMs: 20_000 },
    () => {},
    abort.signal,
  )
  abort.abort()
  expect((await second).end).toEqual({ kind: 'cancelled' })
  await sandbox.writeFile('over', Buffer.from(''), 'write')
  expect((await first).output).toBe('done\n')
  expect(
    (await sandbox.list('.', { recursive: false, maxEntries: 100 })).entries.map(({ path }) => path),
  ).not.toContain('ran')
})

test('a daemon that keeps the output open neither hangs its step nor dies with it', async () => {
  const result = await run(sandbox, 'bash', '(while :; do echo noise; sleep 0.05; done) & echo started $!', 20_000)
  expect(result.end).toEqual({ kind: 'exit', code: 0 })
  expect(result.output).toContain('started')
  expect((await run(sandbox, 'bash', 'sleep 0.1; kill %1 2>/dev/null || kill $! ; echo killed')).output).toMatch(
    /killed\n$/,
  )
  const python = await run(sandbox, 'python', 'import subprocess\np = subprocess.Popen(["sleep", "600"])\n"started"')
  expect(python).toMatchObject({ output: "'started'\n", end: { kind: 'exit', code: 0 } })
  expect((await run(sandbox, 'python', 'p.poll()')).output).toBe('')
})

test('a session that is killed with its keeper is reported as killed, and another one starts', async () => {
  await run(sandbox, 'python', '1')
  expect((await run(sandbox, 'python', 'import os, time\nos.kill(-1, 9)\ntime.sleep(60)')).end).toMatchObject({
    kind: 'signal',
    signal: 'SIGKILL',
  })
  expect(await run(sandbox, 'python', '2')).toMatchObject({ output: '2\n', sessionRestarted: true })
})

test('exceeding the memory is reported as the memory limit, and the sandbox lives on', async () => {
  const bomb = 'blocks = []\nwhile True: blocks.append(bytearray(16 * 2**20))'
  const result = await run(sandbox, 'python', bomb)
  if (cgroupsOf(world.dataDir)) expect(result.end).toEqual({ kind: 'memory_limit', limitMiB: LIMITS.memoryMiB })
  else expect(result.output).toContain('MemoryError')
  expect((await run(sandbox, 'python', '1 + 1')).output).toBe('2\n')
  const child = await run(sandbox, 'bash', `python3 -c '${bomb}'`)
  if (cgroupsOf(world.dataDir)) expect(child.end).toEqual({ kind: 'memory_limit', limitMiB: LIMITS.memoryMiB })
})

test('a fork bomb is stopped by its timeout, and the sandbox lives on', async () => {
  const bombed = await world.sandbox()
  await run(bombed, 'python', 'kept = 1')
  const result = await run(bombed, 'bash', 'bomb() { bomb | bomb & }; bomb; while :; do sleep 1; done', 1500)
  expect(result.end).toEqual({ kind: 'timeout', afterMs: 1500 })
  expect((await run(bombed, 'bash', 'echo alive')).output).toBe('alive\n')
  await bombed.destroy()
})

test('a step that cannot start at the process limit says so', async () => {
  const full = await world.sandbox()
  const filled = await run(
    full,
    'bash',
    'i=0; while (sleep 600 & ) 2>/dev/null; do i=$((i+1)); [ $i -gt 200 ] && break; done; exec sleep 600',
    3000,
  )
  expect(filled.end.kind).toMatch(/timeout|exit/)
  expect((await run(full, 'bash', 'echo alive')).output).toBe('alive\n')
})

test('a full disk is an error of the code, and the sandbox lives on', async () => {
  const result = await run(sandbox, 'bash', 'dd if=/dev/zero of=big bs=1M count=100')
  expect(result.end).toEqual({ kind: 'exit', code: 1 })
  expect(result.output).toContain('No space left on device')
  expect(await run(sandbox, 'python', '3')).toMatchObject({ output: '3\n' })
  await expect(sandbox.writeFile('more', Buffer.alloc(1024 * 1024), 'write')).rejects.toMatchObject({
    code: 'no_space',
  })
  expect((await run(sandbox, 'bash', 'rm big; echo ok')).output).toBe('ok\n')
})

test('code over 4 MiB is refused with a remedy', async () => {
  const result = await run(sandbox, 'python', `x = "${'x'.repeat(4 * 1024 * 1024)}"`)
  expect(result.end).toEqual({ kind: 'exit', code: 126 })
  expect(result.output).toContain('put its data into a file')
})

test('a sandbox ends at the end of its lifetime, and its step is lost', async () => {
  const short = await world.sandboxes.open(
    { interactionId: 'short', epoch: 1, lifetimeMs: 1500, limits: LIMITS },
    never,
  )
  expect((await run(short, 'bash', 'sleep 60')).end).toEqual({ kind: 'lost' })
  await until(async () => !(await world.sandboxes.living()).includes('short'))
})

test('FIFOs, links and files in the runner’s private directory neither block nor redirect its writes', async () => {
  const planted = await world.sandbox('planted')
  const plant = `
import os, socket
names = ['session.sh', 'session.cjs'] + ['step-%d' % number for number in range(2, 100)]
for i, name in enumerate(names):
    path = '/run/errand/' + name
    if os.path.lexists(path): os.unlink(path)
    if i % 3 == 0: os.mkfifo(path)
    elif i % 3 == 1: os.symlink('/workspace/led-away', path)
    else: open(path, 'w').write('print("planted")')
`
  expect(await run(planted, 'python', plant)).toMatchObject({ output: '', end: { kind: 'exit', code: 0 } })
  for (const [language, code] of [
    ['python', 'print("mine")'],
    ['bash', 'echo mine'],
    ['javascript', 'console.log("mine")'],
    ['bash', 'echo mine'],
  ] as const) {
    expect(await run(planted, language, code)).toMatchObject({ output: 'mine\n', end: { kind: 'exit', code: 0 } })
  }
  expect((await planted.list('.', { recursive: false, maxEntries: 9 })).entries.map(({ path }) => path)).toEqual([
    'outputs',
  ])
  await planted.destroy()
})

test('no signal from inside ends the runner', async () => {
  const sandbox = await world.sandbox()
  const signals = 'for signal in INT TERM HUP QUIT USR1 USR2 ALRM ABRT KILL STOP; do kill -$signal 1; done; echo sent'
  expect((await run(sandbox, 'bash', signals)).output).toBe('sent\n')
  expect((await run(sandbox, 'python', '6 * 7')).output).toBe('42\n')
})
