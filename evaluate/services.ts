/** The local services of the evaluation, which its runs use: a web site and three MCP servers, on one loopback port. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { callTool, type McpServerName, toolsOf } from './tasks/many-tools.ts'
import { catalogPage } from './tasks/web-reading.ts'

export interface Services {
  readonly site: URL
  mcpUrl(server: McpServerName): string
}

export interface RunningServices extends Services {
  /** `host:port`, for `egress.allowPrivate`. */
  readonly address: string
  close(): void
}

export async function openServices(): Promise<RunningServices> {
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const address = `127.0.0.1:${port}`
  return {
    address,
    // A name, because runs can't be allowed addresses.
    site: new URL(`http://pumps.localhost:${port}/`),
    mcpUrl: (name) => `http://${address}/mcp/${name}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const [, mcp, name] = url.pathname.split('/')
  if (mcp === 'mcp') return serveMcp(name as McpServerName, request, response)
  const page = catalogPage(url)
  response.writeHead(page ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' })
  response.end(page ?? '<!doctype html><title>Not found</title>')
}

async function serveMcp(name: McpServerName, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  if (request.method !== 'POST') return void response.writeHead(405).end()
  const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString())
  if (id === undefined) return void response.writeHead(202).end()
  const result = answerMcp(name, method, params)
  const error = { code: -32601, message: 'Method not found' }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }))
}

// biome-ignore lint/suspicious/noExplicitAny: parameters of any method
function answerMcp(name: McpServerName, method: string, params: any): object | undefined {
  switch (method) {
    case 'initialize':
      return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name, version: '1' } }
    case 'tools/list':
      return { tools: toolsOf(name) }
    case 'tools/call':
      return { content: [{ type: 'text', text: JSON.stringify(callTool(params.name, params.arguments ?? {})) }] }
    default:
      return undefined
  }
}
