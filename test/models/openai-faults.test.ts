/** R13: a call always ends with a value, after at most three tries, and never restarts after the first fragment. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FakeProvider, type Fault, openFakeProvider, type Reply } from '../fake-provider.ts'
import { ask, call, closedPort, failureOf, KEY, modelAt, openDispatcher, recordedTiming } from './calling.ts'

const dispatcher = openDispatcher()
let provider: FakeProvider

beforeAll(async () => {
  provider = await openFakeProvider()
})
afterEach(() => provider.reset())
afterAll(async () => {
  await provider.close()
  await dispatcher.destroy()
})

/** Idle timeout of tests about silence. Other tests have the default: a busy machine is no silent provider. */
const SHORT_IDLE_MS = 150
const modelWith = (rest: Parameters<typeof modelAt>[2] = {}) => modelAt(provider.url, dispatcher, rest)
const modelFor = (fault: Fault) => modelWith(fault.startsWith('stall') ? { idleTimeoutMs: SHORT_IDLE_MS } : {})

describe('a failure before the first fragment is retried', () => {
  const passing: [Fault, string][] = [
    ['status:408', 'overloaded'],
    ['status:429', 'overloaded'],
    ['status:500', 'overloaded'],
    ['status:502', 'overloaded'],
    ['status:503', 'overloaded'],
    ['status:529', 'overloaded'],
    ['reset', 'unreachable'],
    ['reset-after:0', 'truncated'],
    ['stall', 'stalled'],
    ['stall-after:0', 'stalled'],
    ['truncate-after:0', 'truncated'],
    ['error-event', 'overloaded'],
  ]

  test.each(passing)('%s once, then success', async (fault) => {
    provider.script({ fault, text: 'lost' }, { fault, text: 'lost' }, { text: 'Here.' })
    const { model, timing } = modelFor(fault)
    const { outcome, text } = await call(model, ask('Go'))
    expect({ ok: outcome.ok, text }).toEqual({ ok: true, text: 'Here.' })
    expect(provider.requests).toHaveLength(3)
    expect(timing.waits).toEqual([250, 500])
  })

  test.each(passing)('%s every time fails as %s after three tries', async (fault, kind) => {
    provider.when(/Go/, [{ fault, text: 'lost' }])
    const { outcome, deltas } = await call(modelFor(fault).model, ask('Go'))
    expect(failureOf(outcome)).toMatchObject({ kind, retryable: true })
    expect(failureOf(outcome).message).toContain('(3 tries)')
    expect(deltas).toEqual([])
    expect(outcome.tokens).toBeUndefined()
    expect(provider.requests).toHaveLength(3)
  })

  test('is unreachable without a server, and does not show its address', async () => {
    const port = await closedPort()
    const { model, timing } = modelAt(`http://127.0.0.1:${port}/v1`, dispatcher)
    const failure = failureOf((await call(model, ask('Go'))).outcome)
    expect(failure).toMatchObject({ kind: 'unreachable', retryable: true })
    expect(failure.message).toContain('ECONNREFUSED')
    expect(failure.message).not.toContain(String(port))
    expect(timing.waits).toHaveLength(2)
  })

  test('as often as configured', async () => {
    provider.when(/Go/, [{ fault: 'status:503' }])
    await call(modelWith({ maxTries: 1 }).model, ask('Go'))
    expect(provider.requests).toHaveLength(1)
    await call(modelWith({ maxTries: 5 }).model, ask('Go'))
    expect(provider.requests).toHaveLength(6)
  })

  test('with exponential backoff, full jitter and a maximum', async () => {
    provider.when(/Go/, [{ fault: 'status:503' }])
    const draws: number[] = []
    for (const chance of [0, 0.25, 0.999]) {
      const timing = { ...recordedTiming(), random: () => chance }
      const waits: number[] = []
      const sleep = async (ms: number) => void waits.push(ms)
      await call(modelWith({ maxTries: 8, timing: { ...timing, sleep } }).model, ask('Go'))
      expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000].map((most) => Math.floor(chance * most)))
      draws.push(waits[0]!)
    }
    expect(draws).toEqual([0, 125, 499])
  })

  test.each([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '1234', 'retry-after': '9' }, 1_234],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, 0],
  ])('not before Retry-After: %j', async (headers, waitMs) => {
    provider.script({ fault: 'status:429', headers }, { text: 'ok' })
    const timing = { ...recordedTiming(Date.UTC(2026, 0, 1)), random: () => 0 }
    const { outcome } = await call(modelWith({ timing }).model, ask('Go'))
    expect(outcome.ok).toBe(true)
    expect(timing.waits).toEqual([waitMs])
  })
})

describe('a permanent failure is reported without a retry', () => {
  test.each(['status:400', 'status:404', 'status:422', 'status:413'] as const)('%s', async (fault) => {
    provider.script({ fault, errorMessage: 'No such thing.' })
    const failure = failureOf((await call(modelWith().model, ask('Go'))).outcome)
    expect(failure).toMatchObject({ kind: 'refused', retryable: false })
    expect(failure.message).toContain('No such thing.')
    expect(provider.requests).toHaveLength(1)
  })

  test.each(['status:401', 'status:403'] as const)(
    '%s names the variable with the key, never the key',
    async (fault) => {
      provider.script({ fault, errorMessage: `Incorrect API key provided: ${KEY}` })
      const failure = failureOf((await call(modelWith().model, ask('Go'))).outcome)
      expect(failure).toMatchObject({ kind: 'refused', retryable: false })
      expect(failure.message).toContain('FAKE_KEY')
      expect(failure.message).not.toContain(KEY)
      expect(provider.requests).toHaveLength(1)
    },
  )

  test('an account without credit, even with status 429', async () => {
    provider.script({ fault: 'status:429', errorCode: 'insufficient_quota', errorMessage: 'Pay first.' })
    expect(failureOf((await call(modelWith().model, ask('Go'))).outcome)).toMatchObject({ kind: 'refused' })
    expect(provider.requests).toHaveLength(1)
  })

  test('a redirect, which is not followed', async () => {
    provider.script({ fault: 'status:307', headers: { location: 'http://127.0.0.1:1/' } })
    expect(failureOf((await call(modelWith().model, ask('Go'))).outcome)).toMatchObject({ kind: 'refused' })
  })

  test.each([
    ['garbage', { fault: 'garbage' }],
    ['an HTML page', { fault: 'html' }],
    ['an event that is no object', { raw: 'data: 7\n\n' }],
    ['a JSON body that is none', { fault: 'json', raw: '{"choices": ' }],
    ['a line of more than 8 MiB', { raw: `data: ${'x'.repeat(9 * 1024 * 1024)}` }],
  ] satisfies [string, Reply][])('%s is malformed', async (_, reply) => {
    provider.script(reply)
    const failure = failureOf((await call(modelWith().model, ask('Go'))).outcome)
    expect(failure).toMatchObject({ kind: 'malformed', retryable: false })
    expect(provider.requests).toHaveLength(1)
  })

  test('an error event about the request', async () => {
    provider.script({ fault: 'error-event', errorCode: 'invalid_request_error', errorMessage: 'Too long.' })
    const failure = failureOf((await call(modelWith().model, ask('Go'))).outcome)
    expect(failure).toMatchObject({ kind: 'refused', retryable: false })
    expect(failure.message).toContain('Too long.')
  })

  test('a long error is quoted in part, on one line', async () => {
    provider.script({ fault: 'status:400', raw: `Oh\r\nno\u0000 ${'é'.repeat(200_000)}` })
    const { message } = failureOf((await call(modelWith().model, ask('Go'))).outcome)
    expect(message).toContain('Oh no é')
    expect(message.length).toBeLessThan(700)
  })

  test.each([
    ['{"error":{"message":"why","code":3}}', 'why'],
    ['{"error":"why"}', 'why'],
    ['{"message":"why"}', 'why'],
    ['{"detail":"why"}', 'why'],
    ['{"detail":[{"loc":["body","n"],"msg":"why"},{"msg":"what"}]}', 'body.n: why; what'],
    ['{"object":"error","message":{"detail":[{"loc":["body","n"],"msg":"why"}]}}', 'body.n: why'],
    [
      '{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"error\\":{\\"message\\":\\"why\\"}}"}}}',
      'why',
    ],
    ['[{"error":{"code":400,"message":"why","status":"INVALID_ARGUMENT"}}]', 'why'],
    ['why', 'why'],
  ])('finds the message in %s', async (raw, words) => {
    provider.script({ fault: 'status:400', raw })
    expect(failureOf((await call(modelWith().model, ask('Go'))).outcome).message).toBe(
      `The model provider answered with status 400: "${words}".`,
    )
  })

  test.each([
    [400, 'application/json', 'refused'],
    [200, 'application/json', 'malformed'],
    [200, 'text/event-stream', 'malformed'],
  ])('an endless body (status %i, %s) is not read to its end', async (status, type, kind) => {
    const endless = createServer((_, response) => {
      response.writeHead(status, { 'content-type': type })
      const more = (): void => {
        while (response.write('x'.repeat(65_536)));
        response.once('drain', more)
      }
      more()
    }).listen(0, '127.0.0.1')
    await once(endless, 'listening')
    const { port } = endless.address() as AddressInfo
    const { outcome } = await call(modelAt(`http://127.0.0.1:${port}/v1`, dispatcher).model, ask('Go'))
    expect(failureOf(outcome).kind).toBe(kind)
    endless.close()
    await once(endless, 'close')
  })

  test('an error page is not quoted', async () => {
    provider.script({ fault: 'status:404', raw: '<html><h1>nginx</h1></html>' })
    expect(failureOf((await call(modelWith().model, ask('Go'))).outcome).message).toBe(
      'The model provider answered with status 404.',
    )
  })
})

describe('a failure after the first fragment ends the call: nothing is shown twice', () => {
  test.each([
    ['truncate-after:2', 'truncated'],
    ['reset-after:2', 'truncated'],
    ['stall-after:2', 'stalled'],
    ['error-event-after:2', 'overloaded'],
    ['garbage', 'malformed'],
  ] satisfies [Fault, string][])('%s is %s', async (fault, kind) => {
    provider.script({ fault, text: ['one ', 'two '] })
    const { model, timing } = modelFor(fault)
    const { outcome, text } = await call(model, ask('Go'))
    expect(text).toBe('one two ')
    expect(failureOf(outcome).kind).toBe(kind)
    expect(outcome.tokens).toBeUndefined()
    expect(provider.requests).toHaveLength(1)
    expect(timing.waits).toEqual([])
  })

  test('closes a stalled connection', async () => {
    provider.script({ fault: 'stall-after:1', text: 'one' })
    await call(modelFor('stall').model, ask('Go'))
    expect(await provider.requests[0]!.ended).toBe('closed')
  })

  test('comments keep a slow call alive', async () => {
    const comments = Array.from({ length: 6 }, () => ': wait\n\n')
    const events = [...comments, 'data: {"choices":[{"delta":{"content":"At last."}}]}\n\n', 'data: [DONE]\n\n']
    provider.script({ raw: 'cut', delayMs: 100, cut: () => events.map((event) => Buffer.from(event)) })
    const { model } = modelWith({ idleTimeoutMs: 400 })
    expect(await call(model, ask('Go'))).toMatchObject({ text: 'At last.', outcome: { ok: true } })
  })

  test('succeeds if the connection breaks after the finish reason', async () => {
    const events = 'data: {"choices":[{"delta":{"content":"All."},"finish_reason":"stop"}]}\n\n'
    provider.script({ raw: events, fault: 'reset-after:9' })
    expect(await call(modelWith().model, ask('Go'))).toMatchObject({
      text: 'All.',
      outcome: { ok: true, finish: 'stop' },
    })
  })
})
