/** Checks the Api-Revision header on every route: absent, known, unknown and malformed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const FIRST = '2026-05-20'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when('', () => ({ text: 'Done.' }))
  server = await startServer({ provider })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const ROUTES: [string, string, object?][] = [
  ['POST', '/v1beta/agents', {}],
  ['GET', '/v1beta/agents'],
  ['GET', '/v1beta/agents/nobody'],
  ['PATCH', '/v1beta/agents/nobody', {}],
  ['DELETE', '/v1beta/agents/nobody'],
  ['GET', '/v1beta/agents/nobody/versions'],
  ['POST', '/v1beta/interactions', { instruction: 'hi' }],
  ['POST', '/v1beta/interactions:stream', { instruction: 'hi' }],
  ['GET', '/v1beta/interactions'],
  ['GET', '/v1beta/interactions/nobody'],
  ['GET', '/v1beta/interactions/nobody:stream'],
  ['POST', '/v1beta/interactions/nobody:cancel'],
  ['DELETE', '/v1beta/interactions/nobody'],
]

describe('Api-Revision', () => {
  it.each(ROUTES)('is returned on %s %s, with the latest revision by default', async (method, path, body) => {
    const silent = await server.request(method, path, body)
    expect(silent.headers.get('api-revision')).toMatch(/^\d{4}-\d\d-\d\d$/)
    const pinned = await server.request(method, path, body, { 'api-revision': FIRST })
    expect(pinned.headers.get('api-revision')).toBe(FIRST)
    expect(pinned.status).toBe(silent.status)
  })

  it.each(ROUTES)('causes 400 on %s %s if it is unknown, before any later check', async (method, path, body) => {
    const answer = await server.request(method, path, body, { 'api-revision': '2031-01-01' })
    expect(answer.status, answer.text).toBe(400)
    const error = errorOf(answer)
    expect(error).toMatchObject({ code: 'unsupported_api_revision', retryable: false })
    expect(error.supported).toContain(FIRST)
  })

  it.each([
    'latest',
    '2026-5-20',
    '2026-05-20 x',
    '20260520',
    '2026-02-31',
    'v1',
    '0',
    '2026-05-20, 2026-05-20',
    '2019-01-01',
  ])('causes 400 if it is malformed or never existed: %s', async (revision) => {
    const answer = await server.get('/v1beta/agents', { 'api-revision': revision })
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer).code).toBe('unsupported_api_revision')
  })

  it('is listed under supported only if it is served', async () => {
    const { supported } = errorOf(await server.get('/v1beta/agents', { 'api-revision': 'x' }))
    for (const revision of supported ?? []) {
      const answer = await server.post('/v1beta/interactions', { instruction: 'hi' }, { 'api-revision': revision })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers.get('api-revision')).toBe(revision)
    }
    expect(supported).not.toHaveLength(0)
  })

  it('is by default the latest supported revision', async () => {
    const latest = (await server.get('/v1beta/agents')).headers.get('api-revision')
    const { supported } = errorOf(await server.get('/v1beta/agents', { 'api-revision': 'x' }))
    expect(latest).toBe([...(supported ?? [])].sort().at(-1))
  })

  it('is returned on unrelated errors', async () => {
    for (const answer of [
      await server.post('/v1beta/interactions', {}, { 'api-revision': FIRST }),
      await server.post('/v1beta/interactions', '{', { 'api-revision': FIRST }),
    ]) {
      expect(answer.status).toBe(400)
      expect(errorOf(answer).code).toBe('invalid_request')
      expect(answer.headers.get('api-revision')).toBe(FIRST)
    }
  })
})
