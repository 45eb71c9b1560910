/** A small MCP server over stdio for test/mcp/program.test.ts. Its only tool fetches a URL from inside the sandbox. */
import { createInterface } from 'node:readline'

const INFO = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'fetcher', version: '1' },
}
const TOOLS = [{ name: 'fetch', inputSchema: { type: 'object', properties: { url: { type: 'string' } } } }]

async function answer({ method, params }) {
  if (method === 'initialize') return INFO
  if (method === 'tools/list') return { tools: TOOLS }
  if (method !== 'tools/call') return undefined
  const text = await fetch(params.arguments.url).then(
    async (response) => `${response.status} ${await response.text()}`,
    (error) => `failed: ${error.cause ?? error}`,
  )
  return { content: [{ type: 'text', text }] }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  if (message.id === undefined) continue
  const result = await answer(message)
  const error = { code: -32601, message: 'Method not found' }
  console.log(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) }))
}
