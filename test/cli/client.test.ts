/** The command line against a server that the test scripts by hand, so that connections break at chosen places. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { readSse, type SseMessage } from '../../clients/typescript/src/sse.ts'
import type { Errand } from '../../src/cli/client.ts'
import { withClient } from '../../src/cli/connect.ts'
import type { CliContext, Terminal } from '../../src/cli/context.ts'
import { watch } from '../../src/cli/run.ts'

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

/** Collects what a command writes. */
function openContext(): { readonly context: CliContext; written(): string } {
  let text = ''
  const terminal: Terminal = { write: (chunk) => (text += chunk), isTTY: false, color: false, columns: 80 }
  const context: CliContext = {
    env: {},
    cwd: '/',
    command: 'errand',
    out: terminal,
    err: terminal,
    readStdin: async () => '',
    onSignal: () => () => {},
    exitNow: () => {},
  }
  return { context, written: () => text }
}

function use<T>(url: string, call: (client: Errand) => Promise<T>, { context } = openContext()): Promise<T> {
  return withClient(context, { server: url, key: 'the-key' }, call)
}

async function run(url: string): Promise<{ code: number; written: string }> {
  const terminal = openContext()
  const code = await use(url, (client) => watch(terminal.context, client, { instruction: 'x' }, { json: false }))
  return { code, written: terminal.written() }
}

describe('a stream', () => {
  test('that breaks, even within an event, resumes after the last received event and repeats nothing', async () => {
    const requests: (string | undefined)[] = []
    const url = await serve((request, response) => {
      if (request.url === '/v1beta/interactions/int_1') return response.end('{"files": []}')
      requests.push(`${request.method} ${request.url} ${request.headers['last-event-id'] ?? '-'}`)
      begin(response)
      if (requests.length === 1) response.write(LOG[0]! + LOG[1]! + LOG[2]!.slice(0, 20), () => response.destroy())
      else if (requests.length === 2) response.end(LOG[2]!)
      else response.end(LOG[3]! + LAST)
    })
    const { code, written } = await run(url)
    expect(code).toBe(0)
    expect(written.match(/^(a|b|c|d)+$/gm)!.join('')).toBe('abcd')
    expect(written.match(/The stream broke; reconnecting\./g)).toHaveLength(2)
    expect(requests).toEqual([
      'POST /v1beta/interactions:stream -',
      'GET /v1beta/interactions/int_1:stream 2',
      'GET /v1beta/interactions/int_1:stream 3',
    ])
  })

  test('that cannot be resumed because the interaction is gone ends with the refusal', async () => {
    const gone = await serve((request, response) => {
      if (request.method === 'POST') {
        begin(response)
        return response.write(LOG[0]!, () => response.destroy())
      }
      response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"error":{"message":"There is none."}}')
    })
    await expect(run(gone)).rejects.toMatchObject({
      name: 'Exit',
      code: 4,
      message: 'The server refused (404): There is none.',
    })
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
    const body = ReadableStream.from(chunks) as ReadableStream<Uint8Array>
    return Array.fromAsync(readSse(body, 10_000, () => new Error('idle')))
  }
})

describe('a call', () => {
  test('carries the key and the revision', async () => {
    let headers: IncomingMessage['headers'] = {}
    const url = await serve((request, response) => {
      headers = request.headers
      response.end('{"agents": []}')
    })
    await use(`${url}/`, async (client) => client.agents.list())
    expect(headers).toMatchObject({ 'x-svc-api-key': 'the-key', 'api-revision': '2026-05-20' })
    expect(headers['content-type']).toBeUndefined()
  })

  test('that is refused says why, about which field, and when to try again; it is not repeated', async () => {
    let requests = 0
    const url = await serve((_request, response) => {
      requests++
      response.writeHead(429, { 'Retry-After': '7', 'Content-Type': 'application/json' })
      response.end('{"error":{"message":"Too many.","param":"files"}}')
    })
    await expect(use(url, async (client) => client.agents.list())).rejects.toMatchObject({
      code: 4,
      message: 'The server refused (429): Too many. (files) Try again after 7 s.',
    })
    expect(requests).toBe(1)
  })

  test('to an address without a server names the address and the cause', async () => {
    const url = await serve(() => {})
    await new Promise((resolve) => server!.close(resolve))
    await expect(use(url, async (client) => client.agents.list())).rejects.toThrow(
      new RegExp(
        `^${url} can't be reached: connect ECONNREFUSED.* Is the server running there\\? .errand serve. starts one`,
      ),
    )
  })
})
