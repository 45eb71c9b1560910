/** Hostile bodies and malformed bytes: refused early, with a JSON error body, without reading the rest. */
import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseJson } from '../../src/http/request/json-body.ts'
import { type Edge, KEY, openEdge } from './edge.ts'
import { flood, open, readAnswer } from './raw.ts'

let edge: Edge
let url: string
beforeAll(async () => {
  edge = await openEdge({ limits: { bodyBytes: 1_000_000 } })
  url = await edge.listen()
})
afterAll(() => edge.close())

const POST = 'POST /v1beta/interactions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const WITH_KEY = `${POST}x-svc-api-key: ${KEY}\r\n`
const GIB = 1024 ** 3

test.each([
  ['without a key, of declared length', `${POST}Content-Length: ${GIB}\r\n\r\n`, 401],
  ['without a key, in chunks', `${POST}Transfer-Encoding: chunked\r\n\r\n40000000\r\n`, 401],
  ['with a key, of declared length', `${WITH_KEY}Content-Length: ${GIB}\r\n\r\n`, 413],
  ['with a key, in chunks', `${WITH_KEY}Transfer-Encoding: chunked\r\n\r\n40000000\r\n`, 413],
  [
    'on a GET',
    `GET /v1beta/agents HTTP/1.1\r\nHost: x\r\nx-svc-api-key: ${KEY}\r\nContent-Length: ${GIB}\r\n\r\n`,
    413,
  ],
])('reads almost nothing of a gigabyte body that it refuses: %s', async (_name, head, status) => {
  const socket = await open(url)
  socket.write(head)
  const answer = readAnswer(socket)
  const sent = await flood(socket, GIB)
  expect(await answer).toMatchObject({ status })
  expect((await answer).head).toContain('onnection: close')
  // The server reads up to its limit and its buffer. The rest is in the socket buffers of both kernels.
  expect(sent).toBeLessThan(32 * 1024 * 1024)
})

test('keeps the connection open after refusing a short body', async () => {
  const socket = await open(url)
  socket.write(`${POST}Content-Length: 2\r\n\r\n{}`)
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  const { text } = await readAnswer(socket, (seen) => seen.includes('"ok"'))
  expect(text).toMatch(/^HTTP\/1\.1 401 /)
  expect(text).toContain('HTTP/1.1 200 OK')
})

test.each([
  ['without a key', {}, 401, false],
  ['with a key', { 'x-svc-api-key': KEY }, 200, true],
])('sends 100 Continue only if it will read the body: request %s', async (_n, headers, status, goOn) => {
  const body = JSON.stringify({ instruction: 'x' })
  let continued = false
  const answered = await new Promise((resolve, reject) => {
    const request = httpRequest(`${url}/v1beta/interactions`, {
      method: 'POST',
      headers: {
        ...headers,
        expect: '100-continue',
        'content-type': 'application/json',
        'content-length': body.length,
      },
    })
    request.on('continue', () => {
      continued = true
      request.end(body)
    })
    request.on('response', (response) => {
      resolve(response.statusCode)
      request.destroy()
    })
    request.on('error', reject)
    request.flushHeaders()
  })
  expect(answered).toBe(status)
  expect(continued).toBe(goOn)
})

test.each([
  ['no HTTP', 'hello\r\n\r\n'],
  ['no known method', 'FLY / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['two lengths', `${WITH_KEY}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
  ['a length and chunks', `${WITH_KEY}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['endless headers', `${POST}x-long: ${'x'.repeat(20_000)}\r\n\r\n`],
  ['no Host', 'GET /healthz HTTP/1.1\r\n\r\n'],
  ['a body that stops', `${WITH_KEY}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`],
])('answers malformed HTTP with 400 and a JSON error body: %s', async (_name, bytes) => {
  const socket = await open(url)
  socket.write(bytes)
  const { status, text } = await readAnswer(socket, (seen) => seen.includes('requestId'))
  expect(status).toBe(400)
  expect(text).toMatch(/X-Request-Id: req_/i)
  expect(JSON.parse(text.slice(text.indexOf('{'))).error.code).toBe('invalid_request')
})

test.each([
  ['empty', '', 'empty'],
  ['not JSON', '{"instruction": x}', 'not valid JSON'],
  ['cut off', '{"instruction": "x', 'not valid JSON'],
  ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'UTF-8'],
  ['65 deep', '['.repeat(65), 'deeper than 64'],
  ['a million deep', '['.repeat(1_000_000), 'deeper than 64'],
  ['of 200,000 fields', `{${Array.from({ length: 200_000 }, (_, i) => `"a${i}":1`).join()}}`, 'more than 20000 values'],
  ['with __proto__', '{"labels": {"__proto__": {"x": 1}}}', '__proto__'],
  ['with __proto__ in disguise', '{"\\u005f_proto__": 1}', '__proto__'],
])('rejects an unacceptable JSON body: %s', async (_name, body, words) => {
  await expect(parseJson(Buffer.from(body as string), 64)).rejects.toThrow(words)
})

test.each([
  ['64 deep', `${'['.repeat(64)}${']'.repeat(64)}`],
  ['brackets in strings', JSON.stringify({ a: '['.repeat(100), b: '\\"[[[', '"}{': '\\\\' })],
  ['many commas in a string', JSON.stringify(','.repeat(100_000))],
  ['umlauts', '{"ä":"\\u00e4"}'],
])('parses a valid body like JSON.parse: %s', async (_name, body) => {
  expect(await parseJson(Buffer.from(body), 64)).toEqual(JSON.parse(body))
})
