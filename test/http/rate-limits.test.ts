/**
 * Rate limits: each window admits exactly the limit, refused creations count as calls, and a retry after Retry-After
 * succeeds.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRateLimits } from '../../src/http/gate/rate-limits.ts'
import { type Edge, OTHER_KEY, openEdge } from './edge.ts'

let edge: Edge
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 4, 20) })
  edge = await openEdge({ limits: { interactionsPerMinute: 3, callsPerMinute: 5 } })
})
afterEach(async () => {
  vi.useRealTimers()
  await edge.close()
})

const create = (body: object = { instruction: 'x' }, headers = {}) =>
  edge.call('POST', '/v1beta/interactions', body, headers)

test('admits exactly the limit of concurrent requests, and admits more after Retry-After', async () => {
  const answers = await Promise.all(Array.from({ length: 9 }, () => create()))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
  const refused = answers.find(({ status }) => status === 429)!
  expect(refused.body.error).toMatchObject({ code: 'rate_limited', retryable: true })
  const seconds = Number(refused.headers['retry-after'])
  expect(seconds).toBe(60)
  vi.setSystemTime(Date.now() + seconds * 1000 - 1)
  expect((await create()).status).toBe(429)
  vi.setSystemTime(Date.now() + 1)
  expect((await create()).status).toBe(200)
})

test('every answer has headers with the remaining requests', async () => {
  const first = await create()
  expect(first.headers).toMatchObject({
    ratelimit: '"interactions";r=2;t=60',
    'ratelimit-policy': '"interactions";q=3;w=60, "calls";q=5;w=60',
    'x-ratelimit-limit': '3',
    'x-ratelimit-remaining': '2',
    'x-ratelimit-reset': '60',
  })
  vi.setSystemTime(Date.now() + 20_000)
  const streamed = await edge.call('POST', '/v1beta/interactions:stream', { instruction: 'x' })
  expect(streamed.headers.ratelimit).toBe('"interactions";r=1;t=40')
  expect((await edge.call('GET', '/v1beta/agents')).headers.ratelimit).toBe('"calls";r=4;t=60')
  expect((await edge.call('GET', '/v1beta/nothing')).headers['x-ratelimit-remaining']).toBe('3')
  expect((await edge.call('GET', '/v1beta/agents/%zz')).headers['x-ratelimit-remaining']).toBe('2')
})

test('a failed creation counts as a call', async () => {
  for (let i = 0; i < 4; i++) {
    expect((await create({})).headers['x-ratelimit-limit']).toBe('5')
  }
  expect((await create({ instruction: 'x', agentId: 'missing' })).status).toBe(404)
  expect((await edge.call('GET', '/v1beta/agents')).status).toBe(429)
  for (let i = 0; i < 3; i++) expect((await create()).status).toBe(200)
  expect((await create()).status).toBe(429)
})

test('failed creations count as creations when the limit of calls is used up', async () => {
  for (let i = 0; i < 5; i++) await edge.call('GET', '/v1beta/agents')
  for (let i = 0; i < 3; i++) expect((await create({})).status).toBe(400)
  expect((await create({})).status).toBe(429)
})

test('a repeated creation with the same idempotency key counts as a call', async () => {
  const key = { 'idempotency-key': 'k' }
  await create(undefined, key)
  for (let i = 0; i < 4; i++) expect((await create(undefined, key)).headers['x-ratelimit-limit']).toBe('5')
  expect(edge.engine.runs).toHaveLength(1)
  expect((await create()).headers['x-ratelimit-remaining']).toBe('1')
})

test('each project has its own limits', async () => {
  for (let i = 0; i < 4; i++) await create()
  expect((await create(undefined, { 'x-svc-api-key': OTHER_KEY })).status).toBe(200)
})

test('a refused request does not count, so a refunded one can be used again', async () => {
  const limits = createRateLimits({ interactionsPerMinute: 2, callsPerMinute: 5 })
  const first = await limits.admit('p', 'interactions')
  await limits.admit('p', 'interactions')
  for (let i = 0; i < 3; i++) expect((await limits.admit('p', 'interactions')).admitted).toBe(false)
  expect((await limits.refund('p', first)).class).toBe('calls')
  expect((await limits.admit('p', 'interactions')).admitted).toBe(true)
  expect((await limits.admit('p', 'interactions')).admitted).toBe(false)
})

test('a refund does not apply to a later window', async () => {
  const limits = createRateLimits({ interactionsPerMinute: 2, callsPerMinute: 5 })
  const old = await limits.admit('p', 'interactions')
  vi.setSystemTime(Date.now() + 60_000)
  await limits.admit('p', 'interactions')
  await limits.refund('p', old)
  expect((await limits.admit('p', 'interactions')).admitted).toBe(true)
  expect((await limits.admit('p', 'interactions')).admitted).toBe(false)
})
