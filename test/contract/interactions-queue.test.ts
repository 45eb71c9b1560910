/** Checks that an interaction that waits too long for a worker or a sandbox fails with 503. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, createGate, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: 'Done.' }))
  const limits = { ...ROOMY, runningPerProject: 2, queuedPerProject: 5, queueWaitS: 1 }
  server = await startServer({ provider, config: { limits, sandbox: { pool: 0, maxOpen: 1 } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

function calls(marker: string): number {
  return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).length
}

async function refusedFor(answer: Answer, code: string): Promise<void> {
  expect(answer.status).toBe(503)
  const error = errorOf(answer)
  expect(error).toMatchObject({ code, retryable: true })
  const { interaction } = await checkEnded(server, error.interactionId!)
  expect(interaction).toMatchObject({ status: 'failed', output: '', error: { code } })
}

it('an interaction that no worker claims in time fails with 503 unavailable, blocking and streamed', async () => {
  const gate = createGate()
  provider.when('[occupies]', () => ({ text: 'Later.', hold: gate.opened }))
  const busy: string[] = []
  for (let i = 0; i < 2; i++) {
    busy.push((await server.post(PATH, { instruction: '[occupies]', background: true })).body.interactionId)
  }
  await until(() => calls('[occupies]') === 2)
  const [blocking, stream] = await Promise.all([
    server.post(PATH, { instruction: '[waits]' }),
    server.stream(`${PATH}:stream`, { instruction: '[waits]' }),
  ])
  await refusedFor(blocking, 'unavailable')
  const seen = await stream.all()
  expect(seen.at(-2)).toMatchObject({ event: 'error', data: { code: 'unavailable', status: 503, retryable: true } })
  await checkEnded(server, stream.headers.get('x-interaction-id')!, seen)
  expect(calls('[waits]')).toBe(0)
  gate.open()
  for (const id of busy) {
    expect(await ended(server, id)).toMatchObject({ status: 'completed' })
    await checkEnded(server, id)
  }
})

it('an interaction that gets no sandbox in time fails with 503 sandbox_unavailable', async () => {
  const code = "import time; print('mine', flush=True); time.sleep(1000)"
  provider.when('[has it]', { toolCalls: [{ name: 'code_execution', args: { code } }] })
  const body = { instruction: '[has it]', tools: ['code_execution'], background: true }
  const id = (await server.post(PATH, body)).body.interactionId
  const stream = await server.stream(`${PATH}/${id}:stream`)
  for await (const { event } of stream.events) if (event === 'tool_output') break

  provider.when('[lacks it]', { toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }] })
  const answer = await server.post(PATH, { instruction: '[lacks it]', tools: ['code_execution'] })
  await refusedFor(answer, 'sandbox_unavailable')
  // An interaction that needs no sandbox is not affected.
  expect((await server.post(PATH, { instruction: 'no sandbox', tools: ['code_execution'] })).body.status).toBe(
    'completed',
  )
  expect((await server.post(`${PATH}/${id}:cancel`)).status).toBe(200)
  await checkEnded(server, id)
})
