/**
 * A scripted MCP server over Streamable HTTP on a real socket, for behavior that a correct server does not have. It
 * implements the protocol by hand, so that a test can control every byte.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface McpTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: object
  readonly annotations?: object
}

export interface McpRequest {
  readonly httpMethod: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** The JSON-RPC method; undefined on GET and DELETE. */
  readonly method: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: a test knows the shape of its request.
  readonly params: any
  readonly id: unknown
}

/** Returns a JSON-RPC result, or undefined if it wrote the response itself. */
type Answer = object | undefined

export interface FakeMcp {
  readonly url: string
  /** `127.0.0.1:port`, for egress.allowPrivate. */
  readonly address: string
  readonly requests: McpRequest[]
  /** The `tools/call` requests so far. */
  calls(): McpRequest[]
  tools: readonly McpTool[]
  instructions: string | undefined
  /** The result of a call, or its content as text. */
  onCall: (request: McpRequest, response: ServerResponse) => Answer | string | Promise<Answer | string>
  /** Runs before everything else. Returns true if it has answered. */
  intercept: (request: McpRequest, response: ServerResponse) => boolean | Promise<boolean>
  close(): Promise<void>
}

export async function openFakeMcp(): Promise<FakeMcp> {
  const requests: McpRequest[] = []
  const http = createServer((request, response) => {
    response.on('error', () => {})
    void handle(request, response).catch((error) => response.destroy(error))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  const fake: FakeMcp = {
    url: `http://127.0.0.1:${port}/mcp`,
    address: `127.0.0.1:${port}`,
    requests,
    calls: () => requests.filter(({ method }) => method === 'tools/call'),
    tools: [{ name: 'say', description: 'Says it.', inputSchema: { type: 'object' } }],
    instructions: undefined,
    onCall: ({ params }) => JSON.stringify(params.arguments),
    intercept: () => false,
    close() {
      http.closeAllConnections()
      return new Promise((resolve) => http.close(() => resolve()))
    },
  }

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const message = text.startsWith('{') ? JSON.parse(text) : {}
    const request: McpRequest = {
      httpMethod: incoming.method!,
      url: incoming.url!,
      headers: incoming.headers,
      method: message.method,
      params: message.params,
      id: message.id,
    }
    requests.push(request)
    if (await fake.intercept(request, response)) return
    if (incoming.method !== 'POST') return void response.writeHead(405).end()
    if (message.id === undefined) return void response.writeHead(202).end()
    if (message.method === 'initialize') {
      const { instructions } = fake
      const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: INFO, instructions }
      return sendResult(response, message.id, result, { 'mcp-session-id': 'a-session' })
    }
    if (message.method === 'tools/list') {
      const tools = fake.tools.map((tool) => ({ inputSchema: { type: 'object' }, ...tool }))
      return sendResult(response, message.id, { tools })
    }
    if (message.method === 'tools/call') {
      const answer = await fake.onCall(request, response)
      if (answer === undefined) return
      return sendResult(response, message.id, typeof answer === 'string' ? textResult(answer) : answer)
    }
    send(response, { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'Method not found' } })
  }
  return fake
}

const INFO = { name: 'fake', version: '1' }

function textResult(text: string): object {
  return { content: [{ type: 'text', text }] }
}

export function sendResult(response: ServerResponse, id: unknown, result: object, headers: object = {}): void {
  send(response, { jsonrpc: '2.0', id, result }, headers)
}

function send(response: ServerResponse, message: object, headers: object = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(message))
}
