/**
 * Tests of the log: every line is JSON and has the ids that it belongs to, and no line has a secret or text of a
 * caller.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

const MODEL_KEY = 'model-key-5be1f0a2'
const METRICS_KEY = 'metrics-key-77aa01f3'
const MCP_TOKEN = 'mcp-token-19c3d4e5'
const WEBHOOK_TOKEN = 'webhook-token-4410ab9c'
/** An address on which nothing listens. */
const NOBODY = '127.0.0.1:9'
const WRITTEN = 'words-of-a-caller-93b1'

type Line = Readonly<Record<string, unknown>> & { readonly msg: string }

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', apiKeyEnv: 'MODEL_KEY' }
  server = await startServer({
    config: {
      models: { 'svc-3.5-flash': { ...model, maxTries: 2 } },
      metrics: { key: METRICS_KEY },
      egress: { allowPrivate: [NOBODY] },
      log: 'debug',
    },
    env: { MODEL_KEY },
  })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Returns a function that parses everything logged since this call. It throws if a line is not JSON. */
function startListening(): () => Line[] {
  const from = server.output().length
  const isLog = (line: string) => line.startsWith('{')
  return () =>
    server
      .output()
      .slice(from)
      .split('\n')
      .filter(isLog)
      .map((line) => JSON.parse(line))
}

async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test('logs one line for a request, with its id, route, status and caller, and one for the end of its run', async () => {
  provider.when('[plain]', { text: 'Hello.' })
  const lines = startListening()
  const { headers, body } = await server.post('/v1beta/interactions', { instruction: `${WRITTEN} [plain]` })
  const call = await until(() => lines().find(({ msg }) => msg === 'call'))
  expect(call).toMatchObject({
    level: 30,
    requestId: headers.get('x-request-id'),
    method: 'POST',
    route: '/v1beta/interactions',
    status: 200,
    interactionId: body.id,
    projectId: expect.stringMatching(/^prj_/),
    keyId: expect.stringMatching(/^key_/),
    ms: expect.any(Number),
  })
  expect(lines().filter(({ msg }) => msg === 'call')).toHaveLength(1)
  const end = lines().find(({ msg }) => msg === 'an interaction ended')
  expect(end).toMatchObject({
    interactionId: body.id,
    projectId: call.projectId,
    epoch: 1,
    status: 'completed',
    stopReason: 'end_turn',
  })
})

test('every line that is logged during a run has its interaction id and epoch', async () => {
  provider.when('[retried]', [{ fault: 'status:500' }, { text: 'Hello.' }])
  const lines = startListening()
  const { body } = await server.post('/v1beta/interactions', { instruction: `${WRITTEN} [retried]` })
  // Logged by src/models, which knows nothing of interactions.
  const retry = lines().find(({ msg }) => msg === 'trying a model call again')
  expect(retry).toMatchObject({ interactionId: body.id, projectId: expect.stringMatching(/^prj_/), epoch: 1 })
  expect(retry).not.toHaveProperty('requestId')
})

test('every line that is logged during a request has the request id', async () => {
  const lines = startListening()
  const { headers } = await server.get('/v1beta/agents/agent_unknown')
  const ofRequest = () => lines().filter(({ route }) => route === '/v1beta/agents/:id')
  await until(() => ofRequest().find(({ msg }) => msg === 'call'))
  expect(ofRequest().map(({ msg }) => msg)).toEqual(['refused', 'call'])
  for (const line of ofRequest()) expect(line.requestId).toBe(headers.get('x-request-id'))
})

test('logs no secret and no text of a caller, even at level debug', async () => {
  provider.when('[secretive]', [{ fault: 'status:500', errorMessage: `bad key ${MODEL_KEY}` }, { text: WRITTEN }])
  const credential = { id: 'planted', type: 'bearer', token: MCP_TOKEN, hosts: ['tracker.example'] }
  await server.post('/v1beta/credentials', credential)
  const accepted = await server.post(
    '/v1beta/interactions',
    {
      instruction: `${WRITTEN} [secretive]`,
      systemInstruction: WRITTEN,
      labels: { words: WRITTEN },
      files: [{ name: `${WRITTEN}.txt`, content: WRITTEN }],
      webhook: { url: `http://${NOBODY}/${WEBHOOK_TOKEN}?token=${WEBHOOK_TOKEN}` },
      mcp: [{ name: 'tracker', url: `http://${NOBODY}/`, authentication: { type: 'bearer', token: MCP_TOKEN } }],
    },
    { authorization: `Bearer ${WRITTEN}`, cookie: `session=${WRITTEN}` },
  )
  expect(accepted.body).toMatchObject({ status: 'completed', output: WRITTEN })
  // Misplaced and mistyped keys, and callers' text in unexpected places.
  await server.get(`/v1beta/agents?key=${server.key}`)
  await server.get(`/v1beta/${server.key}`)
  await server.get(`/v1beta/agents/${WRITTEN}`)
  await server.get('/v1beta/agents', { 'x-svc-api-key': `${server.key.slice(0, -1)}!` })
  await server.get('/metrics', { authorization: `Bearer ${METRICS_KEY}` })
  await server.post('/v1beta/interactions', `{"instruction": "${WRITTEN}`)
  await server.request('PUT', `/v1beta/interactions/${WRITTEN}`)
  await server.get(`/v1beta/files/prj_1/int_1/${WRITTEN}?signature=${WRITTEN}`)
  await until(() => (server.output().includes('"msg":"webhook"') ? true : undefined))
  const log = server
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .join('\n')
  for (const about of ['call', 'webhook', 'an interaction ended']) expect(log).toContain(`"msg":"${about}"`)
  const secrets = [server.key.slice(0, -1), MODEL_KEY, METRICS_KEY, MCP_TOKEN, WEBHOOK_TOKEN, WRITTEN]
  for (const secret of secrets) expect(log.includes(secret), secret).toBe(false)
})
