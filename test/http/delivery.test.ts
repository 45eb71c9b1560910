/** Ways to get the result of a run: when it ends, immediately, or after a maximum wait; and what a disconnect does. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { createScriptedEngine, type Edge, KEY, openEdge } from './edge.ts'

let edge: Edge
let url: string
beforeAll(async () => {
  edge = await openEdge()
  url = await edge.listen()
})
afterAll(() => edge.close())
afterEach(() => {
  edge.engine.onSubmit = createScriptedEngine().onSubmit
})

const PATH = '/v1beta/interactions'
const create = (body: object = {}, headers = {}, query = '') =>
  edge.call('POST', `${PATH}${query}`, { instruction: 'x', ...body }, headers)
const stays = () => {
  edge.engine.onSubmit = () => {}
}

test('a blocking call returns the whole interaction and its Location', async () => {
  const { status, headers, body } = await create({ labels: { a: 'b' } })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    interactionId: body.id,
    status: 'completed',
    output: 'hi',
    executionTrace: [],
    files: [],
    warnings: [],
    labels: { a: 'b' },
    createTime: '2026-05-20T00:00:00.000Z',
    endTime: '2026-05-20T00:00:01.000Z',
    resolved: { network: 'disabled' },
  })
  expect(body).not.toHaveProperty('stage')
  expect(headers.location).toBe(`${PATH}/${body.id}`)
  expect((await edge.call('GET', headers.location as string)).body).toEqual(body)
})

test.each([
  ['background', { background: true }, {}, undefined],
  ['respond-async', {}, { prefer: 'respond-async' }, 'respond-async'],
  ['wait=0', {}, { prefer: 'wait=0' }, 'wait=0'],
  ['a second of waiting', {}, { prefer: 'respond-async, wait=1' }, 'respond-async, wait=1'],
])('answers before the run has ended: %s', async (_name, body, headers, applied) => {
  stays()
  const answer = await create(body, headers)
  expect(answer.status).toBe(200)
  expect(answer.body).toMatchObject({ status: 'running', stage: 'working' })
  expect(answer.headers['preference-applied']).toBe(applied)
  expect(answer.headers['x-interaction-id']).toBe(answer.body.id)
})

test('a run that ends within the requested wait is returned complete', async () => {
  const { body, headers } = await create({}, { prefer: 'respond-async, wait=60' })
  expect(body.status).toBe('completed')
  expect(headers['preference-applied']).toBe('wait=60')
})

test('a query parameter or a Prefer header selects the short form, and the query has precedence', async () => {
  const short = { input_tokens: 10, output_tokens: 5 }
  expect((await create({}, {}, '?view=short')).body.usage).toEqual(short)
  const minimal = await create({}, { prefer: 'return=minimal' })
  expect(minimal.body.usage).toEqual(short)
  expect(minimal.headers['preference-applied']).toBe('return=minimal')
  const full = await create({}, { prefer: 'return=minimal' }, '?view=full')
  expect(full.body.usage).toHaveProperty('total_tokens', 15)
  expect(full.headers).not.toHaveProperty('preference-applied')
})

test.each([
  ['deadline_exceeded', 504, false, undefined],
  ['model_error', 500, false, '5'],
  ['sandbox_unavailable', 503, true, '5'],
] as const)('a run that fails with %s answers %i', async (code, status, retryable, retryAfter) => {
  edge.engine.onSubmit = (run) => {
    run.write({ type: 'error', interactionId: run.id, code, message: 'It did not work.', status, retryable })
    run.end('failed')
  }
  const answer = await create()
  expect(answer.status).toBe(status)
  expect(answer.body.error).toEqual({
    code,
    message: 'It did not work.',
    status,
    retryable,
    interactionId: answer.headers['x-interaction-id'],
  })
  expect(answer.headers['retry-after']).toBe(retryAfter)
  const read = await edge.call('GET', answer.headers.location as string)
  expect(read).toMatchObject({ status: 200, body: { status: 'failed', error: { code } } })
})

test('a waiting caller gets the cancelled interaction when another call cancels it', async () => {
  stays()
  const waiting = create()
  await vi.waitFor(() => expect(edge.engine.runs.at(-1)?.log).toHaveLength(1))
  const { id } = edge.engine.runs.at(-1)!
  const cancelled = await edge.call('POST', `${PATH}/${id}:cancel`)
  expect(cancelled.body).toMatchObject({ id, status: 'cancelled' })
  expect(await waiting).toMatchObject({ status: 200, body: { id, status: 'cancelled' } })
})

test.each([
  ['waiting', '', 'continue', false],
  ['waiting', '', 'cancel', true],
  ['streaming', ':stream', 'continue', false],
  ['streaming', ':stream', 'cancel', true],
])(
  'a caller %s on POST /v1beta/interactions%s disconnects with onDisconnect %j: the run’s cancelled is %j',
  async (_kind, path, onDisconnect, cancelled) => {
    stays()
    const before = edge.engine.runs.length
    const follow = vi.spyOn(edge.engine, 'follow')
    const leave = new AbortController()
    const call = fetch(`${url}${PATH}${path}`, {
      method: 'POST',
      headers: { 'x-svc-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ instruction: 'x', onDisconnect }),
      signal: leave.signal,
    })
    await vi.waitFor(() => expect(follow).toHaveBeenCalledOnce())
    leave.abort()
    await call.then((response) => response.text()).catch(() => {})
    const signal = follow.mock.calls[0]![3]
    await vi.waitFor(() => expect(signal.aborted).toBe(true))
    const run = edge.engine.runs[before]!
    if (cancelled) await vi.waitFor(() => expect(run.cancelled).toBe(true))
    else {
      // The server handles the disconnect before it serves the next call.
      await edge.call('GET', '/healthz')
      expect(run.cancelled).toBe(false)
    }
    follow.mockRestore()
  },
)

test('the same idempotency key and body return the same run, in every form of answer', async () => {
  const key = { 'idempotency-key': 'one' }
  const first = await create({ labels: { a: '1', b: '2' } }, key)
  const again = await edge.call('POST', PATH, { background: true, labels: { b: '2', a: '1' }, instruction: 'x' }, key)
  expect(again.body.id).toBe(first.body.id)
  const streamed = await edge.call('POST', `${PATH}:stream`, { instruction: 'x', labels: { a: '1', b: '2' } }, key)
  expect(streamed.headers['x-interaction-id']).toBe(first.body.id)
  const other = await create({ labels: { a: '1' } }, key)
  expect(other.body.error).toMatchObject({ code: 'idempotency_mismatch', status: 422 })
})

test.each(['', 'a b', 'ü', 'x'.repeat(256)])('refuses the idempotency key %j', async (value) => {
  const { body } = await create({}, { 'idempotency-key': value })
  expect(body.error).toMatchObject({ status: 400, param: 'Idempotency-Key' })
})

test('passes strict handling to the engine', async () => {
  await create({}, { prefer: 'handling=strict' })
  expect(edge.engine.runs.at(-1)!.options.strict).toBe(true)
  await create()
  expect(edge.engine.runs.at(-1)!.options.strict).toBe(false)
})

test('a closing server ends streams, and answers waiting callers with 503 and the run’s id', async () => {
  const other = await openEdge()
  other.engine.onSubmit = () => {}
  const base = await other.listen()
  const headers = { 'x-svc-api-key': KEY, 'content-type': 'application/json' }
  const body = JSON.stringify({ instruction: 'x' })
  const stream = await fetch(`${base}${PATH}:stream`, { method: 'POST', headers, body })
  const waiting = fetch(`${base}${PATH}`, { method: 'POST', headers, body })
  await vi.waitFor(() => expect(other.engine.runs).toHaveLength(2))
  const closed = other.close()
  const answer = await waiting
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({
    error: { code: 'unavailable', retryable: true, interactionId: other.engine.runs[1]!.id },
  })
  expect(await stream.text()).toBe('id: 1\nevent: stage\ndata: {"stage":"queued"}\n\n')
  await closed
})
