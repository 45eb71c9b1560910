/** Checks model fallbacks: they are called if a model fails, reported as a warning, and billed at their own price. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider, type Reply } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
/** A PNG image of one red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

let first: FakeProvider
let second: FakeProvider
let dataDir: string
let server: Server
beforeAll(async () => {
  first = await openFakeProvider()
  second = await openFakeProvider()
  dataDir = await mkdtemp(join(tmpdir(), 'errand-fallback-'))
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await first?.close()
  await second?.close()
  await rm(dataDir, { recursive: true, force: true })
})
beforeEach(() => {
  first.reset()
  second.reset()
  // A success resets the failure count of the circuit breaker.
  first.when('[well]', { text: 'Well.' })
})

function start(key?: string): Promise<Server> {
  const model = { provider: 'openai-compatible', model: 'fake', maxTries: 1, idleTimeoutS: 30 }
  const price = { input: 1, output: 1 }
  const models = {
    main: { ...model, baseUrl: first.url, vision: true, price, fallbacks: ['keyless', 'spare'] },
    keyless: { ...model, baseUrl: second.url, apiKeyEnv: 'NOT_SET', price },
    spare: { ...model, baseUrl: second.url, price: { input: 10, output: 100 } },
    alone: { ...model, baseUrl: first.url },
  }
  const options = { config: { models, limits: ROOMY }, env: { ERRAND_LEASE_S: '1' } }
  return startServer({ ...options, dataDir, ...(key !== undefined && { key }) })
}

function usage(input: number, output: number): Reply['usage'] {
  return { input, output }
}

async function run(instruction: string, fields: object = {}) {
  const { status, body, text } = await server.post(PATH, { instruction, model: 'main', ...fields })
  expect(status, text).toBe(200)
  await checkEnded(server, body.interactionId)
  return body
}

const fallbackWarnings = (body: { warnings: { code: string; message: string }[] }) =>
  body.warnings.filter(({ code }) => code === 'model_fallback')

it.each<[string, Reply]>([
  ['answers 503', { fault: 'status:503' }],
  ['refuses the key', { fault: 'status:401' }],
  ['resets the connection', { fault: 'reset' }],
  ['answers with a web page', { fault: 'html' }],
  ['ends before it began', { fault: 'truncate-after:0' }],
])('if a model %s, the first available fallback answers, with a warning', async (_, reply) => {
  first.when('[falls]', reply)
  second.when('[falls]', { text: 'Here.', usage: usage(1_000_000, 10_000) })
  const body = await run('[falls]')
  expect(body).toMatchObject({ status: 'completed', output: 'Here.', model: 'main' })
  expect(fallbackWarnings(body)).toHaveLength(1)
  expect(fallbackWarnings(body)[0]!.message).toMatch(/^The model main did not answer, so spare was asked\. /)
  // 10 + 1 dollars, at the price of the fallback.
  expect(body.usage).toMatchObject({ model_calls: 1, cost: { amount: '11' } })
  await run('[well]')
})

it('a fallback continues an answer that has begun', async () => {
  first.when('[begun]', { text: ['Half ', 'done'], fault: 'reset-after:1' }, { fault: 'status:503' })
  second.when('[begun]', { text: 'never' }, { text: 'done' })
  expect(await run('[begun]')).toMatchObject({ status: 'completed', output: 'Half done' })
  await run('[well]')
})

it('each turn starts with the requested model, and each call is billed at its model’s price', async () => {
  const args = { path: 'dot.png' }
  first.when('[turns]', { fault: 'status:500' }, { text: 'Done.', usage: usage(1_000_000, 0) })
  second.when('[turns]', { toolCalls: [{ name: 'file_read', args }], usage: usage(1_000_000, 0) })
  const body = await run('[turns]', {
    tools: ['file_read'],
    files: [{ name: 'dot.png', content: PNG, encoding: 'base64' }],
  })
  expect(body).toMatchObject({ output: 'Done.', usage: { model_calls: 2, cost: { amount: '11' } } })
  // This model accepts images and receives the one that the fallback requested.
  expect(JSON.stringify(first.requests.at(-1)!.body.messages)).toContain(PNG)
})

it('a fallback without vision gets a note instead of the image', async () => {
  first.when('[sees]', { toolCalls: [{ name: 'file_read', args: { path: 'dot.png' } }] }, { fault: 'status:500' })
  second.when('[sees]', { text: 'unused' }, { text: 'I can’t see it.' })
  await run('[sees]', { tools: ['file_read'], files: [{ name: 'dot.png', content: PNG, encoding: 'base64' }] })
  const messages = JSON.stringify(second.requests[0]!.body.messages)
  expect(messages).not.toContain(PNG)
  expect(messages).toContain('This model cannot be shown what was here')
})

it('the last failure is reported if all models fail', async () => {
  first.when('[all]', { fault: 'status:500' })
  second.when('[all]', { fault: 'status:502' })
  const { code, message } = errorOf(await server.post(PATH, { instruction: '[all]', model: 'main' }))
  expect({ code, told: message.includes('502') }).toEqual({ code: 'model_error', told: true })
  await run('[well]')
})

it('counts a billed call that failed once, even if the server is killed and the next one resumes the run', async () => {
  const billed: Reply = { finish: 'error', text: [], usage: usage(1_000_000, 0) }
  first.when('[billed]', billed, [{ fault: 'stall' }, { text: 'Done.', usage: usage(2_000_000, 0) }])
  second.when('[billed]', {
    toolCalls: [{ name: 'file_read', args: { path: 'none.txt' } }],
    usage: usage(100_000, 0),
  })
  // The deadline ends the run if it repeats the call forever.
  const fields = { background: true, tools: ['file_read'], policy: { maxTurnDuration: 30 } }
  const { body } = await server.post(PATH, { instruction: '[billed]', model: 'main', ...fields })
  const id: string = body.interactionId
  await until(() => first.requests.length === 2)
  await server.stop('SIGKILL')
  server = await start(server.key)
  await ended(server, id)
  expect([first.requests.length, second.requests.length]).toEqual([3, 1])
  const { interaction } = await checkEnded(server, id)
  expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  // 1 and 2 dollars at the price of the first model, 1 at the price of the fallback.
  expect(interaction.usage).toMatchObject({ model_calls: 3, input_tokens: 3_100_000, cost: { amount: '4' } })
})

it('a provider that failed five times in a row is not called, and the server reports this for its models', async () => {
  first.when('[down]', { fault: 'status:503' })
  second.when('[down]', { text: 'Here.' })
  for (let i = 0; i < 5; i++) await run('[down]')
  const asked = first.requests.length
  expect((await run('[down]')).output).toBe('Here.')
  const refused = errorOf(await server.post(PATH, { instruction: '[down]', model: 'alone' }))
  expect(refused).toMatchObject({ code: 'model_error', retryable: true })
  expect(refused.message).toContain('left alone')
  expect(first.requests).toHaveLength(asked)
  const { models } = (await server.get('/v1beta/server')).body
  const health = Object.fromEntries(
    models.map((model: { name: string; health: unknown }) => [model.name, model.health]),
  )
  expect(health.main).toMatchObject({ state: 'resting', failures: 5 })
  expect(health.main.lastFailure.message).toContain('503')
  expect(health.alone.state).toBe('resting')
  expect(health.spare).toEqual({ state: 'up', failures: 0 })
  expect(health.keyless).toBeUndefined()
})
