/**
 * A small MCP server over stdio for test/mcp/program.test.ts. One tool counts its calls; the other ends the process.
 */
import { createInterface } from 'node:readline'

const TOOLS = ['count', 'end'].map((name) => ({ name, inputSchema: { type: 'object' } }))
let calls = 0

function answer({ method, params }) {
  if (method === 'initialize') {
    return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'frail', version: '1' } }
  }
  if (method === 'tools/list') return { tools: TOOLS }
  if (method !== 'tools/call') return undefined
  if (params.name === 'end') process.exit(1)
  return { content: [{ type: 'text', text: String(++calls) }] }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  if (message.id === undefined) continue
  const result = answer(message)
  const error = { code: -32601, message: 'Method not found' }
  console.log(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) }))
}
