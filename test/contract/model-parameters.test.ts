/**
 * Checks reasoning effort, temperature and verbosity from the request, the agent and the model's entry to the provider: which
 * of the three is sent, what `resolved` shows, and which warnings a run gets.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, ROOMY } from './invariants.ts'

const PATH = '/v1beta/interactions'

/** A model of each provider, and where its body has the effort. */
const PROVIDERS: Readonly<Record<string, { model: string; at: readonly string[] }>> = {
  'openai-compatible': { model: 'any', at: ['reasoning_effort'] },
  anthropic: { model: 'claude-opus-5-5', at: ['output_config', 'effort'] },
  google: { model: 'gemini-3.8-flash', at: ['generationConfig', 'thinkingConfig', 'thinkingLevel'] },
  openai: { model: 'gpt-6-sol', at: ['reasoning', 'effort'] },
  azure: { model: 'gpt-6-sol', at: ['reasoning', 'effort'] },
  bedrock: {
    model: 'us.anthropic.claude-opus-5-5',
    at: ['additionalModelRequestFields', 'output_config', 'effort'],
  },
  openrouter: { model: 'openai/gpt-6-sol', at: ['reasoning', 'effort'] },
  mistral: { model: 'mistral-large-4-0', at: ['reasoning_effort'] },
  xai: { model: 'grok-4.7', at: ['reasoning_effort'] },
  deepseek: { model: 'deepseek-v4-pro', at: ['reasoning_effort'] },
  groq: { model: 'openai/gpt-oss-120b', at: ['reasoning_effort'] },
}

/** A provider that records the body of each request and refuses it. */
const bodies: Record<string, unknown>[] = []
const recorder = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  bodies.push(JSON.parse(Buffer.concat(chunks).toString()))
  response.writeHead(400).end('{}')
})

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  recorder.listen(0, '127.0.0.1')
  await once(recorder, 'listening')
  const { port } = recorder.address() as AddressInfo
  provider = await openFakeProvider({ counts: true })
  const each = Object.entries(PROVIDERS).map(([name, { model }]) => {
    const entry = { provider: name, model, apiKeyEnv: 'SOME_KEY', reasoning: { effort: 'high' } }
    return [name, { ...entry, baseUrl: `http://127.0.0.1:${port}/v1` }]
  })
  const plain = { ...provider.model, price: { input: 1, output: 1 } }
  const models = {
    ...Object.fromEntries(each),
    plain,
    usual: { ...plain, temperature: 0.5, reasoning: { effort: 'low' } },
    broken: {
      ...plain,
      baseUrl: 'http://127.0.0.1:1/v1',
      maxTries: 1,
      fallbacks: ['wordy'],
      reasoning: { effort: 'low' },
    },
    wordy: { ...plain, provider: 'openrouter', apiKeyEnv: 'SOME_KEY', temperature: 1 },
    capped: { ...plain, maxOutputTokens: 77 },
    extended: {
      ...plain,
      headers: { 'X-Team': 'research' },
      headersEnv: { 'X-Gateway-Key': 'GATEWAY_KEY' },
      extraBody: { chat_template_kwargs: { enable_thinking: false }, temperature: 0.1 },
    },
    keyless: { ...plain, headersEnv: { 'X-Gateway-Key': 'NOT_SET' } },
  }
  const env = { ...provider.env, SOME_KEY: 'key', GATEWAY_KEY: 'gateway-secret' }
  server = await startServer({ config: { models, demo: true, limits: ROOMY }, env })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  recorder.closeAllConnections()
  recorder.close()
})
beforeEach(() => {
  provider.reset()
  bodies.length = 0
})

/** Runs to the end, even if that is a failure. */
async function run(fields: object) {
  const { body, text } = await server.post(PATH, { instruction: 'Go.', ...fields })
  const id = body.interactionId ?? body.error.interactionId
  expect(id, text).toMatch(/^int_/)
  await checkEnded(server, id)
  return (await server.get(`${PATH}/${id}`)).body
}

async function createAgent(fields: object): Promise<string> {
  const { status, body, text } = await server.post('/v1beta/agents', fields)
  expect(status, text).toBe(200)
  return body.id
}

// biome-ignore lint/suspicious/noExplicitAny: a field of any body
const effortIn = (name: string) => PROVIDERS[name]!.at.reduce<any>((part, key) => part?.[key], bodies.at(-1))

const ignoredOf = (body: { warnings: { code: string; param: string; message: string }[] }) =>
  body.warnings.filter(({ code }) => code === 'setting_ignored').map(({ param, message }) => ({ param, message }))

describe.each(Object.keys(PROVIDERS))('%s gets', (name) => {
  it('the effort of the request, else of the agent, else of the model’s entry', async () => {
    const agentId = await createAgent({ model: name, reasoning: { effort: 'low' } })
    expect((await run({ model: name })).resolved.reasoning).toEqual({ effort: 'high' })
    expect(effortIn(name)).toBe('high')
    expect((await run({ agentId })).resolved.reasoning).toEqual({ effort: 'low' })
    expect(effortIn(name)).toBe('low')
    // DeepSeek has no medium effort; the others have no max, or another word for it.
    const effort = name === 'deepseek' ? 'max' : 'medium'
    expect((await run({ agentId, reasoning: { effort } })).resolved.reasoning).toEqual({ effort })
    expect(effortIn(name)).toBe(effort)
  })
})

it('sends each parameter from the nearest place that sets it, and shows them in `resolved`', async () => {
  provider.when('Go.', { text: 'Gone.' })
  const agentId = await createAgent({ model: 'usual', temperature: 1, verbosity: null })
  const body = await run({ agentId, temperature: 0 })
  expect(provider.requests.at(-1)!.body).toMatchObject({ temperature: 0, reasoning_effort: 'low' })
  expect(body.resolved).toMatchObject({ temperature: 0, reasoning: { effort: 'low' } })
  expect(body.resolved).not.toHaveProperty('verbosity')
  expect(body.warnings).toEqual([])
})

it('sends nothing and shows nothing by default', async () => {
  provider.when('Go.', { text: 'Gone.' })
  const { resolved } = await run({ model: 'plain' })
  for (const name of ['reasoning', 'temperature', 'verbosity']) expect(resolved).not.toHaveProperty(name)
  for (const name of ['reasoning_effort', 'temperature']) expect(provider.requests[0]!.body).not.toHaveProperty(name)
})

it('sends the same parameters in each call of a run, and does not carry them to the next interaction', async () => {
  provider.when('Go.', { toolCalls: [{ name: 'file_read', args: { path: 'a' } }] }, { text: 'Gone.' })
  const first = await run({ model: 'plain', temperature: 0.3, tools: ['file_read'] })
  expect(provider.requests.map(({ body }) => body.temperature)).toEqual([0.3, 0.3])
  provider.when('Again.', { text: 'Gone again.' })
  const next = await run({ instruction: 'Again.', model: 'plain', previousInteractionId: first.interactionId })
  expect(provider.requests.at(-1)!.body).not.toHaveProperty('temperature')
  expect(next.resolved).not.toHaveProperty('temperature')
})

it('warns once about a parameter that the model does not have', async () => {
  provider.when('Go.', { toolCalls: [{ name: 'file_read', args: { path: 'a' } }] }, { text: 'Gone.' })
  const body = await run({ model: 'plain', verbosity: 'low', tools: ['file_read'] })
  expect(body.status).toBe('completed')
  expect(ignoredOf(body)).toEqual([
    { param: 'verbosity', message: 'The model plain has no verbosity, so it was ignored.' },
  ])
  expect(body.resolved.verbosity).toBe('low')
})

it('leaves out a parameter that the server refuses, with a warning, and does not send it again', async () => {
  const refusal = { fault: 'status:400', errorMessage: "Unsupported parameter: 'temperature'" } as const
  provider.when('Go.', ({ body }) => (body.temperature === undefined ? { text: 'Gone.' } : refusal))
  for (const requests of [2, 3]) {
    const body = await run({ model: 'plain', temperature: 0.3, reasoning: { effort: 'high' } })
    expect(body).toMatchObject({ status: 'completed', output: 'Gone.' })
    expect(ignoredOf(body)).toEqual([
      { param: 'temperature', message: 'The model plain refused temperature, so it was left out.' },
    ])
    expect(provider.requests).toHaveLength(requests)
    expect(provider.requests.at(-1)!.body).toMatchObject({ reasoning_effort: 'high' })
  }
})

it('fails with the provider’s error if it refuses something else', async () => {
  provider.when('Go.', { fault: 'status:400', errorMessage: 'No such model.' })
  const body = await run({ model: 'usual' })
  expect(body).toMatchObject({ status: 'failed', error: { code: 'model_error' } })
  expect(provider.requests).toHaveLength(1)
})

it('a fallback gets the run’s parameters in its own form, and none of its own entry', async () => {
  provider.when('Go.', { text: 'Gone.' })
  const body = await run({ model: 'broken', verbosity: 'high' })
  expect(body).toMatchObject({ status: 'completed', output: 'Gone.' })
  expect(provider.requests[0]!.body).toMatchObject({ reasoning: { effort: 'low' }, verbosity: 'high' })
  expect(provider.requests[0]!.body).not.toHaveProperty('temperature')
})

it('the demo model takes any parameters', async () => {
  const body = await run({ model: 'demo', temperature: 2, reasoning: { effort: 'max' }, verbosity: 'low' })
  expect(body).toMatchObject({ status: 'completed', resolved: { temperature: 2 } })
  expect(ignoredOf(body)).toEqual([])
})

it.each<[object, string]>([
  [{ reasoning: { effort: 'extreme' } }, 'reasoning.effort'],
  [{ reasoning: { effort: 3 } }, 'reasoning.effort'],
  [{ reasoning: 'high' }, 'reasoning'],
  [{ temperature: -0.1 }, 'temperature'],
  [{ temperature: 2.1 }, 'temperature'],
  [{ temperature: '1' }, 'temperature'],
  [{ verbosity: 'none' }, 'verbosity'],
])('refuses %j with the field’s name, in runs and agents', async (fields, param) => {
  const agentId = await createAgent({})
  for (const answer of [
    await server.post(PATH, { instruction: 'Go.', ...fields }),
    await server.post('/v1beta/agents', fields),
    await server.request('PATCH', `/v1beta/agents/${agentId}`, fields),
  ]) {
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param })
    expect(errorOf(answer).message).toMatch(/must be (one of|an object with|a number from 0 to 2)/)
  }
})

it('agents store parameters, and a merge patch changes and clears them', async () => {
  const id = await createAgent({ reasoning: { effort: 'high' }, temperature: 0.7, verbosity: 'low' })
  const patch = async (fields: object) => (await server.request('PATCH', `/v1beta/agents/${id}`, fields)).body
  expect(await patch({ temperature: 0 })).toMatchObject({ reasoning: { effort: 'high' }, temperature: 0, version: 2 })
  expect(await patch({ reasoning: { effort: null } })).not.toHaveProperty('reasoning')
  const cleared = await patch({ temperature: null, verbosity: null })
  expect(cleared).not.toHaveProperty('temperature')
  expect(cleared).not.toHaveProperty('verbosity')
  expect((await server.get(`/v1beta/agents/${id}`)).body.version).toBe(4)
  const { body } = await server.post('/v1beta/agents', { reasoning: { effort: null }, temperature: null })
  expect(Object.keys(body)).not.toContain('reasoning')
})

it('a billed attempt that is retried within a call is counted and stored', async () => {
  const usage = { prompt_tokens: 1_000, completion_tokens: 30, total_tokens: 1_030 }
  const raw = `data: ${JSON.stringify({ choices: [], usage })}\n\n`
  provider.when('Go.', [{ raw }, { text: 'Gone.', usage: { input: 200, output: 4 } }])
  const body = await run({ model: 'plain' })
  expect(body).toMatchObject({ status: 'completed', output: 'Gone.' })
  expect(provider.requests).toHaveLength(2)
  expect(body.usage).toMatchObject({ input_tokens: 1_200, output_tokens: 34, model_calls: 2 })
  expect(body.usage.cost.amount).toBe('0.001234')
})

it('limits each call to the entry’s `maxOutputTokens`', async () => {
  provider.when('Go.', { text: 'Gone.' })
  await run({ model: 'capped' })
  expect(provider.requests[0]!.body.max_tokens).toBe(77)
  await run({ model: 'capped', policy: { maxOutputTokens: 50 } })
  expect(provider.requests[1]!.body.max_tokens).toBe(50)
})

it('sends the entry’s headers and body fields, and shows none of them', async () => {
  provider.when('Go.', { text: 'Gone.' })
  const body = await run({ model: 'extended', temperature: 0.9 })
  const { headers, body: sent } = provider.requests[0]!
  expect(headers).toMatchObject({ 'x-team': 'research', 'x-gateway-key': 'gateway-secret' })
  expect(sent).toMatchObject({ temperature: 0.1, chat_template_kwargs: { enable_thinking: false }, stream: true })
  provider.when('Fail.', { fault: 'status:400', errorMessage: 'The key gateway-secret is wrong.' })
  const failed = await run({ instruction: 'Fail.', model: 'extended' })
  const about = (await server.get('/v1beta/server')).text
  for (const text of [JSON.stringify(body), JSON.stringify(failed), about, server.output()]) {
    expect(text).not.toContain('gateway-secret')
  }
})

it('refuses a model whose header’s variable is not set', async () => {
  const answer = await server.post(PATH, { instruction: 'Go.', model: 'keyless' })
  expect(answer.status).toBe(503)
  expect(errorOf(answer).message).toContain('The environment variable NOT_SET is not set.')
})
