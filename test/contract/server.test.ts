/**
 * Checks `GET /v1beta/server`, which the console shows: the part of the doctor's report and the start log that callers
 * may see.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openEdge } from '../http/edge.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const PRIVATE = 'private-s3cr3t-91c7'

let server: Server
beforeAll(async () => {
  const openai = { provider: 'openai-compatible', baseUrl: `http://127.0.0.1:9/${PRIVATE}` }
  server = await startServer({
    config: {
      models: {
        ready: { ...openai, model: 'a', apiKeyEnv: 'MODEL_KEY' },
        keyless: { ...openai, model: 'b', apiKeyEnv: 'NO_SUCH_KEY' },
      },
      search: { provider: 'searxng', baseUrl: `http://127.0.0.1:9/${PRIVATE}` },
    },
    env: { MODEL_KEY: PRIVATE, ERRAND_DEMO: 'off' },
  })
})
afterAll(() => server?.stop())

test('the server is described only to callers with a valid key', async () => {
  for (const headers of [{ 'x-svc-api-key': '' }, { 'x-svc-api-key': 'errand_sk_wrong' }]) {
    const answer = await server.get('/v1beta/server', headers)
    expect(answer.status).toBe(401)
    expect(errorOf(answer).code).toBe('unauthenticated')
  }
  expect((await server.get('/v1beta/server')).status).toBe(200)
})

test('it reports the same as the doctor: what is enforced, what is not, and how many attacks were refused', async () => {
  const { body } = await server.get('/v1beta/server')
  const { stdout } = await server.errand(['doctor'])
  const { driver, enforced, notEnforced, attacks, inside } = body.sandbox
  expect(stdout).toContain(`ok    Driver ${driver}`)
  for (const text of enforced) expect(stdout).toContain(`ok    ${text}`)
  for (const text of notEnforced) expect(stdout).toContain(`warn  Not enforced: ${text}`)
  expect(enforced.length).toBeGreaterThan(0)
  expect(notEnforced.join('\n')).toContain('kernel: shared with the host')
  expect(attacks.tried).toBeGreaterThan(0)
  expect(attacks.open).toHaveLength(attacks.tried - attacks.refused)
  expect(stdout).toContain(`All ${attacks.tried} attacks of the self-test were blocked`)
  expect(stdout).toContain(`Inside a sandbox: ${inside}`)
  expect(stdout).toContain(`Errand ${body.version}\n`)
})

test('it lists models with the reason if one is unavailable, and missing tools with the remedy', async () => {
  const { body } = await server.get('/v1beta/server')
  const model = { provider: 'openai-compatible', source: 'errand.yaml', demo: false, vision: false, documents: false }
  const unavailable = 'The environment variable NO_SUCH_KEY is not set. It must hold the key for the model keyless.'
  expect(body.models).toEqual([
    { name: 'ready', ...model, health: { state: 'untried', failures: 0 } },
    { name: 'keyless', ...model, unavailable },
  ])
  expect(body.defaultModel).toBe('ready')
  expect(body.search).toBe('searxng')
  expect(body.tools.available).toEqual(expect.arrayContaining(['code_execution', 'web_search']))
  const plain = await startServer()
  try {
    const { tools, search } = (await plain.get('/v1beta/server')).body
    expect(search).toBeUndefined()
    expect(tools.available).not.toContain('web_search')
    expect(tools.missing).toContainEqual({
      name: 'web_search',
      remedy: 'Name a service in `search.provider`: searxng, brave, tavily, exa, or model.',
    })
  } finally {
    await plain.stop()
  }
})

test('it contains no secret: no key, no directory of the operator, no provider address', async () => {
  const { text } = await server.get('/v1beta/server')
  for (const secret of [PRIVATE, server.key, server.dataDir, '127.0.0.1', 'chromium-headless-shell"']) {
    expect(text).not.toContain(secret)
  }
  const edge = await openEdge()
  try {
    const { body, text } = await edge.call('GET', '/v1beta/server')
    expect(body.models[0].source).toBe('Ollama')
    expect(body.sandbox.browser).toBe(true)
    expect(body.sandbox.attacks).toEqual({
      tried: 2,
      refused: 1,
      open: [{ name: 'user namespaces', detail: 'one could be made' }],
    })
    expect(text).not.toMatch(/10\.1\.2\.3|\/srv\/private/)
  } finally {
    await edge.close()
  }
})
