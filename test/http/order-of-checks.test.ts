/** The order of request checks: a request that would fail several checks gets the error of the first one only. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Edge, KEY, OFF_KEY, OTHER_KEY, openEdge } from './edge.ts'

let edge: Edge
beforeAll(async () => {
  edge = await openEdge({ limits: { bodyBytes: 1000 } })
})
afterAll(() => edge.close())

const ALL_WRONG = { 'api-revision': 'x', 'content-type': 'text/plain' }
const LONG = `{"instruction": ${' '.repeat(1000)}`

test.each([
  ['no key', { 'x-svc-api-key': '', ...ALL_WRONG }, LONG, 401, 'unauthenticated'],
  ['a wrong key', { 'x-svc-api-key': 'nope', ...ALL_WRONG }, LONG, 401, 'unauthenticated'],
  ['a switched-off account', { 'x-svc-api-key': OFF_KEY, ...ALL_WRONG }, LONG, 403, 'feature_disabled'],
  ['an unknown revision', ALL_WRONG, LONG, 400, 'unsupported_api_revision'],
  ['another media type', { 'content-type': 'text/plain' }, LONG, 415, 'unsupported_media_type'],
  ['another charset', { 'content-type': 'application/json; charset=utf-16' }, LONG, 415, 'unsupported_media_type'],
  [
    'a merge patch where none is',
    { 'content-type': 'application/merge-patch+json' },
    LONG,
    415,
    'unsupported_media_type',
  ],
  ['a long body', {}, LONG, 413, 'payload_too_large'],
  ['broken JSON', {}, '{"instruction": 5', 400, 'invalid_request'],
  ['a wrong field', {}, { instruction: 5, agentId: 'missing' }, 400, 'invalid_request'],
  ['an unknown model', {}, { instruction: 'x', model: 'nope', agentId: 'missing' }, 400, 'invalid_request'],
  ['an agent that is not there', {}, { instruction: 'x', agentId: 'missing' }, 404, 'not_found'],
])('reports only the first failed check: %s', async (_name, headers, body, status, code) => {
  const answer = await edge.call('POST', '/v1beta/interactions', body, headers)
  expect(answer.status).toBe(status)
  expect(answer.body.error).toMatchObject({ code, status })
  expect(answer.body.requestId).toBe(answer.headers['x-request-id'])
})

test('checks the rate limit after the account switch and before the revision', async () => {
  const small = await openEdge({ limits: { callsPerMinute: 1 } })
  await small.call('GET', '/v1beta/agents')
  const over = await small.call('GET', '/v1beta/agents', undefined, ALL_WRONG)
  expect(over.body.error).toMatchObject({ code: 'rate_limited', status: 429, retryable: true })
  const off = await small.call('GET', '/v1beta/agents', undefined, { ...ALL_WRONG, 'x-svc-api-key': OFF_KEY })
  expect(off.status).toBe(403)
  await small.close()
})

test.each([
  ['GET', '/v1beta/nothing', KEY, 404],
  ['GET', '/v1beta/nothing', '', 401],
  ['GET', '/v1beta', '', 401],
  ['GET', '/v1beta/agents/%zz', '', 401],
  ['GET', '/v1beta/agents/%zz', KEY, 404],
  ['GET', `/v1beta/agents/${'a'.repeat(300)}`, KEY, 404],
  ['GET', '/v1beta/agents/%00', KEY, 404],
  ['GET', '/v1beta/agents/', KEY, 404],
  ['PUT', '/v1beta/agents/x', '', 401],
  ['GET', '/v1betamax', '', 404],
  ['GET', '/nothing', '', 404],
  ['DELETE', '/healthz', '', 405],
])('%s %s with the key %j returns %i', async (method, url, key, status) => {
  const answer = await edge.call(method, url, undefined, { 'x-svc-api-key': key })
  expect(answer.status).toBe(status)
  expect(answer.body.error.status).toBe(status)
  expect(answer.headers['x-request-id']).toMatch(/^req_/)
})

test.each([
  ['PUT', '/v1beta/agents', 'GET, HEAD, POST'],
  ['POST', '/v1beta/agents/x', 'DELETE, GET, HEAD, PATCH'],
  ['TRACE', '/v1beta/agents/x/versions', 'GET, HEAD'],
  ['PATCH', '/v1beta/interactions', 'GET, HEAD, POST'],
  ['GET', '/v1beta/interactions:stream', 'POST'],
  ['POST', '/v1beta/interactions/x:stream', 'GET, HEAD'],
  ['GET', '/v1beta/interactions/x:cancel', 'POST'],
  ['PROPFIND', '/v1beta/interactions/x/cancel', 'POST'],
  ['OPTIONS', '/docs', 'GET, HEAD'],
])('%s %s returns 405 with Allow: %s', async (method, url, allow) => {
  const answer = await edge.call(method, url)
  expect(answer.status).toBe(405)
  expect(answer.headers.allow).toBe(allow)
  expect(answer.body.error.code).toBe('method_not_allowed')
})

test.each([
  ['/v1beta/interactions:stream', '/v1beta/interactions%3Astream'],
  ['/v1beta/interactions:stream', '/v1beta/interactions%3astream'],
])('%s can also be requested as %s', async (_raw, encoded) => {
  const answer = await edge.call('POST', encoded, { instruction: 'x' })
  expect(answer.headers['content-type']).toContain('text/event-stream')
})

test('a POST without a body needs no media type, and accepts any', async () => {
  const { body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x' })
  for (const type of ['', 'nonsense', 'application/json']) {
    const headers: Record<string, string> = type === '' ? {} : { 'content-type': type }
    const answer = await edge.call('POST', `/v1beta/interactions/${body.id}:cancel`, undefined, headers)
    expect(answer.status).toBe(200)
  }
})

test('answers for another project’s resource are the same as for one that does not exist', async () => {
  const { body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x' })
  const agent = (await edge.call('POST', '/v1beta/agents', {})).body
  for (const [method, url] of [
    ['GET', `/v1beta/interactions/${body.id}`],
    ['DELETE', `/v1beta/interactions/${body.id}`],
    ['GET', `/v1beta/interactions/${body.id}:stream`],
    ['POST', `/v1beta/interactions/${body.id}:cancel`],
    ['GET', `/v1beta/agents/${agent.id}`],
    ['PATCH', `/v1beta/agents/${agent.id}`],
    ['DELETE', `/v1beta/agents/${agent.id}`],
    ['GET', `/v1beta/agents/${agent.id}/versions`],
    ['GET', `/v1beta/agents/${agent.id}/versions/1`],
  ] as const) {
    const change = method === 'PATCH' ? {} : undefined
    const foreign = await edge.call(method, url, change, { 'x-svc-api-key': OTHER_KEY })
    const absent = await edge.call(method, url.replace(/(int|agt)_\w+/, '$1_nothing'), change)
    expect(foreign.status).toBe(404)
    expect(JSON.stringify(foreign.body.error).replace(/(int|agt)_\w+/, '')).toBe(
      JSON.stringify(absent.body.error).replace(/(int|agt)_\w+/, ''),
    )
  }
})
