/** Checks what a run keeps when the next server takes it over: input files, output files, and the running step. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

/** Longer than any test: the next server must detect that the previous one is dead without waiting for its leases. */
const LEASE = { ERRAND_LEASE_S: '600' }
let provider: FakeProvider
let server: Server

beforeEach(async () => {
  provider = await openFakeProvider()
})

afterEach(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
})

async function restart(signal: NodeJS.Signals): Promise<void> {
  const { dataDir, key } = server
  await server.stop(signal)
  server = await startServer({ provider, dataDir, key, env: LEASE })
}

async function start(body: object): Promise<string> {
  const answer = await server.post('/v1beta/interactions', { background: true, tools: ['code_execution'], ...body })
  expect(answer.status).toBe(200)
  return answer.body.interactionId
}

async function ended(id: string) {
  await (await server.stream(`/v1beta/interactions/${id}:stream`)).all()
  return (await server.get(`/v1beta/interactions/${id}`)).body
}

/** Resolves when the event log of the interaction contains an event that `look` accepts. */
async function seen(id: string, look: (event: { event: string; data: { text?: string } }) => boolean): Promise<void> {
  const stream = await server.stream(`/v1beta/interactions/${id}:stream`)
  for await (const event of stream.events) if (look(event)) break
  stream.drop()
}

const call = (code: string) => ({ toolCalls: [{ name: 'code_execution', args: { code } }] })

test('files that were written before a crash are among the output files', async () => {
  server = await startServer({ provider, env: LEASE })
  let release = () => {}
  const hold = new Promise<void>((resolve) => {
    release = resolve
  })
  provider.when('[report]', call('open("outputs/report.txt", "w").write("figures"); print(open("in.txt").read())'), [
    { hold, text: 'Done.' },
    { text: 'Done.' },
  ])
  const id = await start({ instruction: 'write it [report]', files: [{ name: 'in.txt', content: 'given' }] })
  await seen(id, ({ event }) => event === 'tool_result')
  await restart('SIGKILL')
  release()
  const body = await ended(id)
  expect(body).toMatchObject({ status: 'completed', output: 'Done.', files: [{ name: 'report.txt', size: 7 }] })
  expect(body.warnings).toEqual([])
  expect(body.executionTrace.filter(({ type }: { type: string }) => type === 'tool_call')).toHaveLength(1)
})

test('a step that runs while its server shuts down continues, and the next server gets its result', async () => {
  server = await startServer({ provider, config: { drainS: 1 }, env: LEASE })
  provider.when(
    '[slow]',
    call('import time\nfor i in range(40):\n    print("tick", i, flush=True); time.sleep(0.1)\nprint("all of it")'),
    { text: 'Done.' },
  )
  const id = await start({ instruction: 'take your time [slow]' })
  await seen(id, ({ event, data }) => event === 'tool_output' && data.text!.includes('tick'))
  const { dataDir, key } = server
  server.process.kill('SIGTERM')
  await new Promise((resolve) => server.process.once('exit', resolve))
  server = await startServer({ provider, dataDir, key, env: LEASE })
  const body = await ended(id)
  expect(body).toMatchObject({ status: 'completed', output: 'Done.' })
  const [result] = body.executionTrace.filter(({ type }: { type: string }) => type === 'tool_result')
  expect(result.output).toContain('tick 0\n')
  expect(result.output).toContain('all of it')
  expect(result.output).not.toContain('stopped')
  expect(provider.requests).toHaveLength(2)
})

test('a stream that is resumed after the last event ends immediately', async () => {
  server = await startServer({ provider, env: LEASE })
  provider.when('[end]', { text: 'x' })
  const { body } = await server.post('/v1beta/interactions', { instruction: '[end]' })
  const all = await (await server.stream(`/v1beta/interactions/${body.interactionId}:stream`)).all()
  const last = all.at(-1)!.id!
  const rest = await server.stream(`/v1beta/interactions/${body.interactionId}:stream?lastEventId=${last}`)
  expect(await rest.all()).toEqual([])
})

test('labels with invalid Unicode are refused on agents and interactions', async () => {
  server = await startServer({ provider, env: LEASE })
  const labels = '{"\\ud800":"x","\\ud801":"x"}'
  for (const [path, body] of [
    ['/v1beta/agents', `{"labels":${labels}}`],
    ['/v1beta/interactions', `{"instruction":"hi","labels":${labels}}`],
  ] as const) {
    const answer = await server.post(path, body)
    expect(answer.status).toBe(400)
    expect(answer.body.error.param).toMatch(/^labels/)
  }
})

test('a run whose stored turns cannot be read fails and is not claimed again forever', async () => {
  server = await startServer({ provider, env: LEASE })
  provider.when('[broken]', call('print(1)'), { hold: new Promise(() => {}), text: 'never' })
  const id = await start({ instruction: '[broken]' })
  await seen(id, ({ event }) => event === 'tool_result')
  const { dataDir, key } = server
  await server.stop('SIGKILL')
  const broken = "update turns set message = 'no json' where interaction_id = ? returning turn"
  expect(await server.stored.query(broken, id)).toHaveLength(1)
  server = await startServer({ provider, dataDir, key, env: LEASE })
  const body = await ended(id)
  expect(body).toMatchObject({ status: 'failed', error: { code: 'internal' } })
})

test('output files that cannot be stored fail the run and are never lost silently', async () => {
  server = await startServer({ provider, env: LEASE })
  provider.when('[kept]', call('open("outputs/x.txt", "w").write("x")'), { text: 'Done.' })
  // A file replaces the directory of the file store, so that writes fail for root too.
  await rm(join(server.dataDir, 'blobs'), { recursive: true, force: true })
  await writeFile(join(server.dataDir, 'blobs'), '')
  const { status, body } = await server.post('/v1beta/interactions', {
    instruction: '[kept]',
    tools: ['code_execution'],
  })
  expect(status).toBe(503)
  expect(body.error).toMatchObject({ code: 'unavailable', retryable: true })
  expect(body.error.message).toContain('output files')
})

test('a run that was taken over is shown as working, not as queued', async () => {
  server = await startServer({ provider, env: LEASE })
  const { promise: hold, resolve: release } = Promise.withResolvers<void>()
  provider.when('[stage]', [
    { hold: new Promise(() => {}), text: 'never' },
    { reasoning: 'hmm', hold, holdAfter: 2, text: 'Done.' },
  ])
  const id = await start({ instruction: '[stage]' })
  await provider.received(1)
  await restart('SIGKILL')
  await seen(id, ({ event }) => event === 'reasoning_started')
  expect((await server.get(`/v1beta/interactions/${id}`)).body).toMatchObject({ status: 'running', stage: 'working' })
  release()
  expect(await ended(id)).toMatchObject({ status: 'completed', output: 'Done.' })
})
