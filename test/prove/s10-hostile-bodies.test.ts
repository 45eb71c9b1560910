/**
 * S10: hostile bodies, as bytes on a socket. Each is refused with a 4xx problem and never a 5xx. Almost nothing is read
 * before the key is checked, and the server answers the next caller.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Edge, KEY, openEdge } from '../http/edge.ts'
import { open, readAnswer } from '../http/raw.ts'
import { figure, rounds } from '../support/prove.ts'

const ROUNDS = rounds(20, 3)
const GIB = 1024 ** 3
/** Maximum number of bytes that may be read of a body of one gigabyte. */
const MOST_READ = 64 * 1024
const MOST_MS = 50

let edge: Edge
let url: string
/** Bytes that the server has read on each connection, by the client's port. */
const taken = new Map<number, () => number>()
beforeAll(async () => {
  edge = await openEdge({ limits: { callsPerMinute: 1_000_000, interactionsPerMinute: 1_000_000 } })
  url = await edge.listen()
  edge.app.server.on('connection', (socket) => taken.set(socket.remotePort!, () => socket.bytesRead))
})
afterAll(() => edge.close())

const head = (headers: string, type = 'application/json') =>
  `POST /v1beta/interactions HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\n${headers}\r\n`
/** Encoded in advance, because encoding would count as response time. */
const keyed = (body: string | Buffer, type?: string) => [
  head(`x-svc-api-key: ${KEY}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`, type),
  Buffer.from(body as string),
]
const withKey = `x-svc-api-key: ${KEY}\r\n`
const fields = (count: number) => `{${Array.from({ length: count }, (_, i) => `"a${i}":1`).join()}}`

const ATTACKS: Record<string, readonly (string | Buffer)[]> = {
  'a million deep, of lists': keyed('['.repeat(1_000_000)),
  'a million deep, of objects': keyed('{"a":'.repeat(1_000_000)),
  '200,000 keys': keyed(fields(200_000)),
  'a field named __proto__': keyed('{"instruction": "x", "labels": {"__proto__": {"a": 1}}}'),
  'a field named __proto__ in disguise': keyed('{"instruction": "x", "\\u005f_proto__": 1}'),
  'constructor.prototype': keyed(
    '{"instruction": "x", "policy": {"constructor": {"prototype": {"a": 1}}, "maxTurnDuration": "x"}}',
  ),
  'bad UTF-8': keyed(Buffer.from('7b22696e737472756374696f6e223a22ff227d', 'hex')),
  'a lone surrogate': keyed(Buffer.from('7b22696e737472756374696f6e223a22eda080227d', 'hex')),
  'UTF-16': keyed(Buffer.from('\ufeff{"instruction": "x"}', 'utf16le')),
  'no JSON': keyed('instruction=x'),
  nothing: keyed(''),
  'a number without end': keyed(`{"instruction": "x", "policy": {"maxTurnDuration": 1${'0'.repeat(400)}}}`),
  'a wrong type': keyed('{"instruction": "x"}', 'text/plain'),
  'a form': keyed('instruction=x', 'application/x-www-form-urlencoded'),
  'a foreign charset': keyed('{"instruction": "x"}', 'application/json; charset=utf-16'),
  'a length and chunks': [head(`${withKey}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n`), '{}0\r\n\r\n'],
  'two lengths': [head(`${withKey}Content-Length: 2\r\nContent-Length: 20\r\n`), '{}'],
  'chunked twice': [head(`${withKey}Transfer-Encoding: chunked, chunked\r\n`), '0\r\n\r\n'],
  'a chunk of no number': [head(`${withKey}Transfer-Encoding: chunked\r\n`), 'ZZ\r\n'],
  'a negative length': [head(`${withKey}Content-Length: -1\r\n`), '{}'],
  'a gigabyte with a key': [head(`${withKey}Content-Length: ${GIB}\r\n`), Buffer.alloc(1024 * 1024, 0x20)],
}

const WITHOUT_KEY: Record<string, readonly (string | Buffer)[]> = {
  'a gigabyte without a key': [head(`Content-Length: ${GIB}\r\n`), Buffer.alloc(16 * 1024 * 1024, 0x20)],
  'a gigabyte in chunks without a key': [
    head('Transfer-Encoding: chunked\r\n'),
    '40000000\r\n',
    Buffer.alloc(16 * 1024 * 1024, 0x20),
  ],
  'a wrong key': [head(`x-svc-api-key: wrong\r\nContent-Length: ${GIB}\r\n`), Buffer.alloc(16 * 1024 * 1024, 0x20)],
  'a million deep without a key': [head('Content-Length: 1000000\r\n'), '['.repeat(1_000_000)],
}

/** Returns the status, the number of bytes read, and the milliseconds from the last byte read to the response. */
async function attack(bytes: readonly (string | Buffer)[]) {
  const socket = await open(url)
  const answer = readAnswer(socket, (text) => text.includes('"requestId"'))
  const port = socket.localPort!
  let began = performance.now()
  const onSent = () => {
    began = performance.now()
  }
  for (const part of bytes) socket.write(part, onSent)
  const { status, text } = await answer
  const ms = performance.now() - began
  expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n{'))).error.status).toBe(status)
  return { status, ms, read: taken.get(port)!() }
}

const middle = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!

test.each(Object.entries({ ...ATTACKS, ...WITHOUT_KEY }))('refuses a hostile body quickly: %s', async (name, bytes) => {
  const times: number[] = []
  const reads: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { status, ms, read } = await attack(bytes)
    times.push(ms)
    reads.push(read - bytes[0]!.length)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    if (name in WITHOUT_KEY) expect(status).toBe(401)
  }
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  if (name in WITHOUT_KEY) {
    figure('S10', `${name}: bytes read before the refusal (median)`, middle(reads))
    expect(middle(reads)).toBeLessThanOrEqual(MOST_READ)
  }
  figure('S10', `${name}: time until the refusal, ms (median of ${ROUNDS})`, middle(times).toFixed(1))
  // The short form runs in parallel with other tests, and even the full form may share the machine.
  if (process.env.PROVE) expect(Math.min(...times)).toBeLessThan(MOST_MS)
})
