/** Background jobs: output by ranges, input, ends, limits; a second connection goes on where the first one stopped. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JobReport, JobRequest, Language, Sandbox } from '../../src/sandbox/port.ts'
import { LIMITS, never, openWorld, run, until, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox('int_of-the-jobs')
})
afterAll(() => world.close())

let keys = 0
const WAIT_MS = 20_000

/** A refusal fails the test. */
async function ask(job: string, request: Partial<JobRequest> = {}, box = sandbox): Promise<JobReport> {
  const report = await box.job({ key: `j${++keys}`, job, waitMs: WAIT_MS, ...request }, never)
  if ('refused' in report) throw new Error(report.refused)
  return report
}

const start = (job: string, code: string, language: Language = 'bash', waitMs = 0, box = sandbox) =>
  ask(job, { start: { language, code }, waitMs }, box)

/** Reads until the job has ended. Returns its output. */
async function toEnd(job: string): Promise<{ output: string; report: JobReport }> {
  let output = ''
  for (;;) {
    const report = await ask(job)
    output += report.output
    if (report.state.end) return { output, report }
  }
}

test('a job that ends soon is answered whole', async () => {
  const report = await start('soon', 'echo out; echo err >&2; exit 3', 'bash', WAIT_MS)
  expect(report).toMatchObject({ output: 'out\nerr\n', from: 0, to: 8, state: { end: { kind: 'exit', code: 3 } } })
  expect(report.state.saved).toEqual({ bytes: 8, cut: false })
  expect((await run(sandbox, 'bash', `cat ${report.path}`)).output).toBe('out\nerr\n')
})

test.each([
  ['python', 'import os, sys; print("cwd", os.getcwd()); print("café", file=sys.stderr)'],
  ['javascript', 'console.log("cwd", process.cwd()); import("node:fs").then(() => console.error("café"))'],
  ['bash', 'echo cwd $PWD; echo café >&2'],
] as const)('%s runs in the working directory', async (language, code) => {
  expect((await start(`in-${language}`, code, language, WAIT_MS)).output).toBe('cwd /workspace\ncafé\n')
})

test('output is returned once, by ranges that join', async () => {
  const code = 'for i in 1 2 3; do echo "part $i"; while [ ! -e "go$i" ]; do sleep 0.02; done; done'
  const reports = [await start('parts', code, 'bash', WAIT_MS)]
  for (const i of [1, 2, 3]) {
    await sandbox.writeFile(`go${i}`, Buffer.from(''), 'write')
    reports.push(await ask('parts'))
  }
  expect(reports.map(({ output }) => output)).toEqual(['part 1\n', 'part 2\n', 'part 3\n', ''])
  expect(reports.map(({ from, to }) => [from, to])).toEqual(
    [0, 7, 14, 21].map((from, i) => [from, Math.min(21, 7 * (i + 1))]),
  )
  expect(reports.at(-1)!.state.end).toEqual({ kind: 'exit', code: 0 })
})

test('an interactive program gets its input line by line', async () => {
  const code = 'name = input("Name? ")\nprint("Hello", name)\nage = input("Age? ")\nprint(int(age) + 1)'
  expect((await start('ask', code, 'python', WAIT_MS)).output).toBe('Name? ')
  expect((await ask('ask', { input: 'Ada\n' })).output).toBe('Hello Ada\nAge? ')
  const { output, state } = await ask('ask', { input: '36\n' })
  expect([output, state.end]).toEqual(['37\n', { kind: 'exit', code: 0 }])
  expect(await sandbox.job({ key: 'late', job: 'ask', input: 'x\n', waitMs: 0 }, never)).toEqual({ refused: 'closed' })
})

test('a repeated key starts nothing, sends nothing and gets the same output', async () => {
  const first = {
    key: 'begin',
    job: 'same',
    start: { language: 'bash', code: 'echo run >> runs; cat' },
    waitMs: 0,
  } as const
  await ask('same', first)
  await ask('same', first)
  const input = { key: 'line', input: 'one\n' }
  const answers = [await ask('same', input), await ask('same', input)]
  expect(answers[0]).toMatchObject({ output: 'one\n' })
  expect(answers[1]).toEqual(answers[0])
  expect((await run(sandbox, 'bash', 'cat runs')).output).toBe('run\n')
  expect((await ask('same', { kill: true })).output).toBe('')
})

test('kill and a timeout end a job with all its processes', async () => {
  const code = 'setsid sleep 4321 & sleep 4321 & echo begun; wait'
  await start('killed', code, 'bash', WAIT_MS)
  expect((await ask('killed', { kill: true })).state.end).toEqual({ kind: 'cancelled' })
  const timed = await ask('timed', { start: { language: 'bash', code, timeoutMs: 200 } })
  const end = timed.state.end ?? (await toEnd('timed')).report.state.end
  expect(end).toEqual({ kind: 'timeout', afterMs: 200 })
  await until(async () => (await run(sandbox, 'bash', 'pgrep -c -f "sleep 432[1]"')).output === '0\n')
})

test('the next connection reads on, also what was printed while there was none', async () => {
  const other = await world.connect()
  const spec = { interactionId: 'int_next', epoch: 1, lifetimeMs: 120_000, limits: LIMITS }
  const before = await other.open(spec, never)
  const code = 'echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; touch done; sleep 300'
  expect((await start('kept', code, 'bash', WAIT_MS, before)).output).toBe('one\n')
  const lost = before.job({ key: 'lost', job: 'kept', waitMs: 60_000 }, never)
  await before.writeFile('go', Buffer.from(''), 'write')
  lost.catch(() => {})
  await other.close()
  const after = await world.sandboxes.open({ ...spec, epoch: 2 }, never)
  expect(after.fresh).toBe(false)
  const again = await ask('kept', { key: 'lost' }, after)
  expect([again.output, again.from]).toEqual(['two\n', 4])
  expect((await ask('kept', { waitMs: 0 }, after)).output).toBe('')
  expect((await after.jobs()).map(({ id, end }) => [id, end])).toEqual([['kept', undefined]])
  await after.destroy()
})

test('a request that is given up takes no output', async () => {
  await start('given-up', 'read line; echo "got $line"; sleep 300')
  const abort = new AbortController()
  const waiting = sandbox.job({ key: 'gives-up', job: 'given-up', waitMs: 60_000 }, abort.signal)
  abort.abort(new Error('given up'))
  await expect(waiting).rejects.toThrow('given up')
  expect((await ask('given-up', { input: 'it\n' })).output).toBe('got it\n')
  await ask('given-up', { kill: true })
})

describe('of hostile jobs', () => {
  test('endless output is bounded in the file and in every answer', async () => {
    await start('endless', 'yes "$(head -c 999 /dev/zero | tr "\\0" y)"')
    await until(async () => (await sandbox.jobs()).find(({ id }) => id === 'endless')!.saved.cut)
    const { output, to, state } = await ask('endless', { waitMs: 0 })
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(LIMITS.outputBytes)
    expect(output).toMatch(/^y+\n[y\n]+\n\[… [\d,]+ bytes of output cut here …\]\n[y\n]+$/)
    expect(state.saved.bytes).toBeLessThanOrEqual(32 * 1024 * 1024)
    expect(to).toBeGreaterThan(state.saved.bytes)
    const { output: free } = await run(sandbox, 'bash', 'df --output=avail /tmp | tail -1')
    expect(Number(free)).toBeGreaterThan(16 * 1024)
    await ask('endless', { kill: true })
  })

  test('unread input is refused after 64 KiB', async () => {
    await start('deaf', 'sleep 300')
    const line = `${'x'.repeat(60_000)}\n`
    const answers: unknown[] = []
    for (let i = 0; i < 4; i++)
      answers.push(await sandbox.job({ key: `d${i}`, job: 'deaf', input: line, waitMs: 0 }, never))
    expect(answers[0]).toMatchObject({ output: '' })
    expect(answers[3]).toEqual({ refused: 'unread' })
    await ask('deaf', { kill: true })
  })

  test('a thousand starts make at most eight at once, and few are remembered', async () => {
    const refused = new Set<unknown>()
    for (let i = 0; i < 12; i++) {
      const report = await sandbox.job(
        { key: `many${i}`, job: `many-${i}`, start: { language: 'bash', code: 'sleep 300' }, waitMs: 0 },
        never,
      )
      if ('refused' in report) refused.add(report.refused)
    }
    expect([...refused]).toEqual(['too_many'])
    const running = (await sandbox.jobs()).filter(({ end }) => !end)
    expect(running).toHaveLength(8)
    for (const { id } of running) await ask(id, { kill: true })
    for (let i = 0; i < 1000; i++) {
      await ask(`short-${i}`, { start: { language: 'bash', code: ':' } })
    }
    const all = await sandbox.jobs()
    expect(all.length).toBeLessThanOrEqual(40)
    expect(await sandbox.job({ key: 'old', job: 'short-0', waitMs: 0 }, never)).toEqual({ refused: 'unknown' })
    expect((await run(sandbox, 'bash', 'ls /proc/1/fd 2>/dev/null | wc -l; echo alive')).output).toContain('alive')
  })

  test('a fork bomb ends with its job, and the sandbox goes on', async () => {
    const box = await world.sandbox()
    await start('bomb', 'bomb() { bomb | bomb & }; bomb; sleep 300', 'bash', 500, box)
    const { state } = await ask('bomb', { kill: true }, box)
    expect(state.end).toBeDefined()
    await until(async () => (await run(box, 'bash', 'echo alive')).output === 'alive\n')
    expect((await start('after', 'echo after', 'bash', WAIT_MS, box)).output).toBe('after\n')
    await box.destroy()
  })

  test('a job that changes its file, or puts a link in its place, gets what is left of it', async () => {
    const code =
      'echo secret; f=$(ls -t /tmp/errand/* | head -1); : > "$f"; sleep 0.7; echo more; rm "$f"; ln -s /etc/passwd "$f"'
    await start('changes', code)
    const { output } = await toEnd('changes')
    expect(output).not.toContain('root')
  })
})

test('characters are not split between two answers', async () => {
  const code = "printf 'a\\303'; while [ ! -e rest ]; do sleep 0.02; done; printf '\\251b'"
  const first = await start('halves', code, 'bash', WAIT_MS)
  await sandbox.writeFile('rest', Buffer.from(''), 'write')
  expect(first.output + (await toEnd('halves')).output).toBe('aéb')
})

test('progress bars are returned in their last state', async () => {
  const { output } = await start('bar', 'for i in 1 2 3; do printf "\\r%s of 3" $i; done; echo', 'bash', WAIT_MS)
  expect(output).toBe('3 of 3\n')
})
