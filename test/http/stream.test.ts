/** Event streams: they can be resumed after every event, and slow readers are dropped. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { StoredEvent } from '../../src/domain/event.ts'
import { createReaders } from '../../src/http/gate/readers.ts'
import { sendEvents } from '../../src/http/response/sse.ts'
import type { TelemetryEvent } from '../../src/telemetry/events.ts'
import { readSse } from '../support/sse.ts'
import { createScriptedEngine, type Edge, KEY, openEdge } from './edge.ts'
import { open } from './raw.ts'

let edge: Edge
beforeAll(async () => {
  edge = await openEdge()
})
afterAll(() => edge.close())
afterEach(() => {
  vi.useRealTimers()
  edge.engine.onSubmit = createScriptedEngine().onSubmit
})

async function seqs(answer: { text: string }): Promise<string[]> {
  const read: string[] = []
  for await (const { id } of readSse(new Response(answer.text))) read.push(id ?? '')
  return read
}

test('resumes a stream after any event, by header or by query', async () => {
  edge.engine.onSubmit = (run) => {
    for (const text of 'abc') run.write({ type: 'partial_output', text })
    run.end()
  }
  const { headers, text } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x', stream: true })
  expect(await seqs({ text })).toEqual(['1', '2', '3', '4', '5'])
  expect(headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'x-interaction-id': expect.stringMatching(/^int_/),
    location: `/v1beta/interactions/${headers['x-interaction-id']}`,
    'x-request-id': expect.stringMatching(/^req_/),
  })
  for (let last = 0; last <= 5; last++) {
    const rest = ['1', '2', '3', '4', '5'].slice(last)
    const path = headers.location as string
    const byHeader = await edge.call('GET', `${path}:stream?lastEventId=1`, undefined, { 'last-event-id': `${last}` })
    expect(await seqs(byHeader)).toEqual(rest)
    expect(await seqs(await edge.call('GET', `${path}/stream?lastEventId=${last}`))).toEqual(rest)
    expect(await seqs(await edge.call('GET', `${path}%3Astream?lastEventId=${last}`))).toEqual(rest)
  }
})

test('sends no header of a stream twice', async () => {
  const url = await edge.listen()
  const response = await fetch(`${url}/v1beta/interactions:stream`, {
    method: 'POST',
    headers: { 'x-svc-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ instruction: 'x' }),
  })
  await response.text()
  // fetch joins repeated headers with a comma.
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('x-request-id')).toMatch(/^req_\w+$/)
})

test.each([
  ['x', 'lastEventId'],
  ['-1', 'lastEventId'],
  ['1.5', 'lastEventId'],
  ['999', 'lastEventId'],
])('lastEventId=%s returns 400', async (value, param) => {
  const { body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x' })
  const answer = await edge.call('GET', `/v1beta/interactions/${body.id}:stream?lastEventId=${value}`)
  expect(answer.body.error).toMatchObject({ status: 400, param })
  const byHeader = await edge.call('GET', `/v1beta/interactions/${body.id}:stream`, undefined, {
    'last-event-id': value,
  })
  expect(byHeader.body.error).toMatchObject({ status: 400, param: 'Last-Event-ID' })
})

test('the short form has two usage fields, and arguments as text', async () => {
  edge.engine.onSubmit = (run) => {
    run.write({ type: 'tool_call', step: 1, name: 'code_execution', args: { code: '1' } })
    run.end()
  }
  const { text } = await edge.call('POST', '/v1beta/interactions:stream?view=short', { instruction: 'x' })
  expect(text).toContain('data: {"step":1,"name":"code_execution","args":"{\\"code\\":\\"1\\"}"}\n')
  expect(text).toContain('"usage":{"input_tokens":10,"output_tokens":5}}\n')
})

test('HEAD on a stream returns its headers immediately', async () => {
  edge.engine.onSubmit = () => {}
  await edge.call('POST', '/v1beta/interactions', { instruction: 'x', background: true })
  const answer = await edge.call('HEAD', `/v1beta/interactions/${edge.engine.runs.at(-1)!.id}:stream`)
  expect(answer).toMatchObject({ status: 200, text: '' })
  expect(answer.headers['content-type']).toContain('text/event-stream')
})

test('keeps an idle stream alive, and drops a reader that does not read', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const big: StoredEvent = { seq: 1, type: 'partial_output', data: JSON.stringify({ text: 'x'.repeat(8_000_000) }) }
  let sent = 0
  const told: TelemetryEvent[] = []
  let dropped: Promise<boolean> | undefined
  const server = createServer((_request, response) => {
    dropped = sendEvents({
      response,
      headers: {},
      async *follow(signal) {
        while (!signal.aborted) {
          sent++
          yield [big]
        }
      },
      encode: ({ data }) => data,
      closing: new AbortController().signal,
      emit: (moment) => told.push(moment),
      hold: () => {},
      readers: createReaders(),
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const socket = await open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  socket.pause().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await vi.waitFor(() => expect(sent).toBe(1))
  vi.advanceTimersByTime(15_000)
  await new Promise((resolve) => setImmediate(resolve))
  expect(sent).toBe(1)
  vi.advanceTimersByTime(10_000)
  expect(await dropped).toBe(false)
  expect(told).toEqual([{ type: 'stream_opened' }, { type: 'stream_closed', cause: 'slow' }])
  // The server read nothing more from the log while the client did not read.
  expect(sent).toBe(1)
  socket.destroy()
  server.close()
})
