/** The client against a server that speaks the wire by hand, so that it can break where it is told to. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { createClient, Refused, Unreachable } from '../../src/cli/client.ts'
import { readSse, type SseMessage } from '../../src/cli/sse.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
})

async function serve(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  server = createServer(handle)
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const LOG = ['a', 'b', 'c', 'd'].map((text, i) => `id: ${i + 1}\nevent: partial_output\ndata: {"text":"${text}"}\n\n`)
const LAST = 'id: 5\nevent: completed\ndata: {"interactionId":"int_1","status":"completed","usage":{}}\n\n'

function begin(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Interaction-Id': 'int_1' })
}

async function texts(url: string, onBreak?: () => void): Promise<string> {
  const { events } = await createClient(url, 'k').run({ instruction: 'x' }, onBreak)
  let all = ''
  for await (const event of events) if (event.type === 'partial_output') all += event.text
  return all
}

describe('a stream', () => {
  test('that breaks, even within an event, is taken up after the last event that came, and nothing comes twice', async () => {
    const asked: (string | undefined)[] = []
    const url = await serve((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers['last-event-id'] ?? '-'}`)
      begin(response)
      if (asked.length === 1) response.write(LOG[0]! + LOG[1]! + LOG[2]!.slice(0, 20), () => response.destroy())
      else if (asked.length === 2) response.end(LOG[2]!)
      else response.end(LOG[3]! + LAST)
    })
    let breaks = 0
    expect(await texts(url, () => breaks++)).toBe('abcd')
    expect(breaks).toBe(2)
    expect(asked).toEqual([
      'POST /v1beta/interactions:stream -',
      'GET /v1beta/interactions/int_1:stream 2',
      'GET /v1beta/interactions/int_1:stream 3',
    ])
  })

  test('that can never be taken up again because it is gone ends with the refusal', async () => {
    const gone = await serve((request, response) => {
      if (request.method === 'POST') {
        begin(response)
        return response.write(LOG[0]!, () => response.destroy())
      }
      response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"error":{"message":"There is none."}}')
    })
    await expect(texts(gone)).rejects.toThrow(Refused)
  })

  test('is read the same however its bytes are cut', async () => {
    const bytes = new TextEncoder().encode(
      `: keep-alive\n\n${LOG.join('')}id: 9\r\nevent: x\r\ndata: {"text":"é😀"}\r\n\r\n`,
    )
    const whole = await collect([bytes])
    expect(whole.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '9'])
    expect(JSON.parse(whole[4]!.data)).toEqual({ text: 'é😀' })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        expect(await collect(at.slice(1).map((end, i) => bytes.slice(at[i], end)))).toEqual(whole)
      }),
    )
  })

  async function collect(chunks: readonly Uint8Array[]): Promise<SseMessage[]> {
    const messages: SseMessage[] = []
    for await (const message of readSse(ReadableStream.from(chunks) as ReadableStream<Uint8Array>))
      messages.push(message)
    return messages
  }
})

describe('a call', () => {
  test('carries the key and the revision', async () => {
    let headers: IncomingMessage['headers'] = {}
    const url = await serve((request, response) => {
      headers = request.headers
      response.end('{}')
    })
    await createClient(`${url}/`, 'the-key').call('GET', '/v1beta/agents')
    expect(headers).toMatchObject({ 'x-svc-api-key': 'the-key', 'api-revision': '2026-05-20' })
    expect(headers['content-type']).toBeUndefined()
  })

  test('that is refused says why, about which field, and when to try again', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(429, { 'Retry-After': '7', 'Content-Type': 'application/json' })
      response.end('{"error":{"message":"Too many.","param":"files"}}')
    })
    const failure = createClient(url, 'k').call('GET', '/x')
    await expect(failure).rejects.toThrow('Too many. (files) Try again after 7 s.')
    await expect(failure).rejects.toMatchObject({ status: 429 })
  })

  test('to nobody says that there is nobody', async () => {
    const url = await serve(() => {})
    await new Promise((resolve) => server!.close(resolve))
    await expect(createClient(url, 'k').call('GET', '/x')).rejects.toThrow(Unreachable)
    await expect(createClient(url, 'k').call('GET', '/x')).rejects.toThrow(
      `${url} can't be reached: connect ECONNREFUSED`,
    )
  })
})
