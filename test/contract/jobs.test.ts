/** Checks background jobs of code_execution: output, input, ends, limits, and a server that is killed while they run. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { processesWith } from '../support/processes.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, type Call, outputsOf, readFile, toolRunner } from '../support/tool-run.ts'
import { ended, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
let provider: FakeProvider
let dataDir: string
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  dataDir = await mkdtemp(join(tmpdir(), 'errand-jobs-'))
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(dataDir, { recursive: true, force: true })
})

function start(key?: string): Promise<Server> {
  return startServer({ provider, dataDir, config: {}, env: { ERRAND_LEASE_S: '1' }, ...(key && { key }) })
}

const run = toolRunner(
  () => server,
  () => provider,
)

const background = (code: string, more: object = {}): Call => ({
  name: 'code_execution',
  args: { code, language: 'bash', background: true, ...more },
})
const job = (args: object): Call => ({ name: 'job', args })
/** A job has the number of the step that started it. */
const FIRST = 'job-1'

it('starts a job, waits for its output and its end, and lists it', async () => {
  const { outputs } = await run([
    background('echo begun; while [ ! -e go ]; do sleep 0.05; done; echo finished; exit 4'),
    bash('touch go'),
    job({ id: FIRST, waitSeconds: 60 }),
    job({ id: FIRST }),
    job({}),
  ])
  expect(outputs[0]).toMatch(/^begun\n\[job-1 is running, for \d\.\d s\.\]$/)
  expect(outputs[2]).toMatch(/^finished\n\[job-1 ended with exit code 4 after \d+\.\d s\.\]$/)
  expect(outputs[3]).toMatch(/^\[It has printed nothing new\.\]\n\[job-1 ended with exit code 4 /)
  expect(outputs[4]).toMatch(/^job-1 \(bash\) ended with exit code 4 after \d+\.\d s; 15 bytes of output$/)
})

it('returns the whole output of a job that ends at once', async () => {
  const { outputs } = await run([background('import sys; print(6 * 7)', { language: 'python' })])
  expect(outputs[0]).toMatch(/^42\n\[job-1 ended with exit code 0 after \d\.\d s\.\]$/)
})

it('sends lines to an interactive program', async () => {
  const code = 'while True:\n  line = input("> ")\n  print(line.upper())\n  if line == "quit": break'
  const { outputs } = await run([
    background(code, { language: 'python' }),
    job({ id: FIRST, input: 'first' }),
    job({ id: FIRST, input: 'quit\n' }),
    job({ id: FIRST, input: 'again' }),
  ])
  expect(outputs[0]).toMatch(/^> \n\[job-1 is running/)
  expect(outputs[1]).toMatch(/^FIRST\n> \n\[job-1 is running/)
  expect(outputs[2]).toMatch(/^QUIT\n\[job-1 ended with exit code 0/)
  expect(outputs[3]).toBe('The input was not sent: job-1 has ended or has closed its input.')
})

it('kills a job with all its processes, at the request of the model, at its timeout and at the end of the run', async () => {
  const marker = `job-${Date.now()}`
  const code = `MARK=${marker} setsid bash -c 'exec -a ${marker} sleep 3000' & wait`
  const { outputs } = await run([
    background(code),
    bash(`pgrep -c ${marker}`),
    job({ id: FIRST, kill: true }),
    background('sleep 3000', { timeoutSeconds: 0.3 }),
    job({ id: 'job-7', waitSeconds: 60 }),
    background(code),
  ])
  expect(outputs[2]).toMatch(/^\[It has printed nothing\.\]\n\[job-1 was killed after /)
  expect(outputs.slice(3, 5).join('\n')).toContain('[job-7 was ended after 0.3 s, its time limit.]')
  expect(outputs[5]).toContain('job-11 is running')
  await until(async () => (await processesWith(marker)).length === 0)
})

it('says what is wrong with a call', async () => {
  const { outputs } = await run([
    job({ id: 'job-99' }),
    job({ id: FIRST, input: 'x', kill: true }),
    job({ id: 1 }),
    background(`#${'x'.repeat(100_001)}`),
    job({}),
    Array.from({ length: 9 }, () => background('sleep 300')),
  ])
  expect(outputs[0]).toBe(
    'There is no job "job-99". It never started, or its sandbox is gone. Call job without id to list the jobs.',
  )
  expect(outputs[1]).toBe('job did nothing: use either `input` or `kill`.')
  expect(outputs[2]).toContain('`id` must be a string, got 1')
  expect(outputs[3]).toContain('its code has more than 100,000 bytes')
  expect(outputs[4]).toBe('There are no jobs. code_execution starts one with background: true.')
  expect(outputs.slice(5).filter((text) => text.includes('is running'))).toHaveLength(8)
  // The calls of one reply run at the same time.
  expect(outputs.slice(5)).toContain('The job was not started: eight are running. Wait for one, or end one with kill.')
})

it('writes long output to the file of the job, of which the model gets beginning and end', async () => {
  const marker = `[long job ${Date.now()}]`
  let path = ''
  provider.when(
    marker,
    { toolCalls: [background('seq 1 200000; read', { timeoutSeconds: 300 })] },
    ({ body: { messages } }) => {
      path = /\/tmp\/errand\/job-1-\w{6}\.txt/.exec(String(messages.at(-1)!.content))![0]
      return { toolCalls: [readFile(path, { startLine: 100_000, endLine: 100_000 })] }
    },
    { text: 'Done.' },
  )
  const { body } = await server.post(PATH, { instruction: marker, tools: ['code_execution', 'file_read'] })
  const [begun, read] = body.executionTrace.filter(({ type }: { type: string }) => type === 'tool_result')
  expect(begun.full).toEqual({ path, bytes: 1_288_895 })
  expect(read.output).toContain('100000\t100000')
  const results = provider.requests.at(-1)!.body.messages.filter(({ role }) => role === 'tool')
  expect(Buffer.byteLength(String(results[0]!.content))).toBeLessThan(14_000)
  expect(String(results[0]!.content)).toMatch(/^1\n2\n.*\n200000\n\[job-1 is running, for \d\.\d s\.\]$/s)
})

it('offers job only with code_execution', async () => {
  const names = async (tools: string[]) => {
    await run([], { tools })
    return (provider.requests.at(-1)!.body.tools ?? []).map((tool) => (tool.function as { name: string }).name)
  }
  expect(await names(['code_execution'])).toEqual(['code_execution', 'job'])
  expect(await names(['file_write'])).toEqual(['file_write'])
})

describe('kill -9 of the server', () => {
  const asked = (marker: string) => provider.requests.filter(({ body }) => JSON.stringify(body).includes(marker))

  async function crash(): Promise<void> {
    await server.stop('SIGKILL')
    server = await start(server.key)
  }

  async function begin(marker: string): Promise<string> {
    const { body } = await server.post(PATH, { instruction: marker, tools: ['code_execution'], background: true })
    return body.interactionId
  }

  async function outputs(id: string): Promise<string[]> {
    await ended(server, id)
    return outputsOf((await server.get(`${PATH}/${id}`)).body.executionTrace)
  }

  it('while a job runs: it goes on, and the next worker gets what it printed meanwhile, once', async () => {
    const marker = `[job outlives ${Date.now()}]`
    const code = 'echo started >> starts; echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; cat'
    provider.when(
      marker,
      { toolCalls: [background(code)] },
      { toolCalls: [bash('touch go')] },
      [{ fault: 'stall' }, { toolCalls: [job({ id: FIRST, waitSeconds: 60 })] }],
      { toolCalls: [job({ id: FIRST, waitSeconds: 0 })] },
      { toolCalls: [job({ id: FIRST, kill: true }), bash('cat starts')] },
      { text: 'Done.' },
    )
    const id = await begin(marker)
    await until(() => asked(marker).length === 3)
    await crash()
    const [first, , second, third, , starts] = await outputs(id)
    expect(first).toMatch(/^one\n\[job-1 is running/)
    expect(second).toMatch(/^two\n\[job-1 is running/)
    expect(third).toMatch(/^\[It has printed nothing new\.\]\n\[job-1 is running/)
    expect(starts).toBe('started')
  })

  it('while a call waits for a job, which ends unseen: the next worker gets its end', async () => {
    const marker = `[job ends unseen ${Date.now()}]`
    const name = `seen-${Date.now()}`
    const code = `exec -a ${name} bash -c 'echo one; sleep 3; echo two; exit 5'`
    provider.when(
      marker,
      { toolCalls: [background(code)] },
      { toolCalls: [job({ id: FIRST, waitSeconds: 60 })] },
      { toolCalls: [job({ id: FIRST, waitSeconds: 0 })] },
      { text: 'Done.' },
    )
    const id = await begin(marker)
    await until(async () => {
      const { events } = (await server.get(`${PATH}/${id}/events`)).body
      return events.filter(({ event }: { event: string }) => event === 'tool_call').length === 2
    })
    await server.stop('SIGKILL')
    await until(async () => (await processesWith(name)).length === 0)
    server = await start(server.key)
    const [first, second, third] = await outputs(id)
    expect(first).toMatch(/^one\n\[job-1 is running/)
    expect(second).toMatch(/^two\n\[job-1 ended with exit code 5/)
    expect(third).toMatch(/^\[It has printed nothing new\.\]\n\[job-1 ended with exit code 5/)
  })

  it('right after a job was started: it is not started again', async () => {
    const marker = `[job starts once ${Date.now()}]`
    const running = `once-${Date.now()}`
    const code = `echo started >> starts; exec -a ${running} sleep 3000`
    provider.when(
      marker,
      { toolCalls: [background(code)] },
      { toolCalls: [bash(`cat starts; pgrep -fc '^${running} '`)] },
      { text: 'Done.' },
    )
    const id = await begin(marker)
    // The call waits a second for the end of the job; the server is killed in that second.
    await until(async () => (await processesWith(running)).length > 0)
    await crash()
    const [first, second] = await outputs(id)
    expect(first).toContain('[job-1 is running')
    expect(second).toBe('started\n1')
  })
})
