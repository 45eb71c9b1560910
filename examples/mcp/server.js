// A small MCP server over stdio, without dependencies, with one tool that looks up a word. A real server would use
// @modelcontextprotocol/server. Errand accepts any program that speaks MCP on stdin and stdout.
import { createInterface } from 'node:readline'

const MEANINGS = {
  epoch: 'How often an interaction was taken up; a worker of an older one can write nothing any more.',
  lease: 'How long a worker may be silent before another takes its interaction up.',
}
const TOOL = {
  name: 'look_up',
  description: 'Looks a word of Errand’s own language up.',
  inputSchema: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] },
}

function answer({ method, params }) {
  if (method === 'initialize') {
    const serverInfo = { name: 'glossary', version: '1.0.0' }
    return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo }
  }
  if (method === 'ping') return {}
  if (method === 'tools/list') return { tools: [TOOL] }
  if (method !== 'tools/call') return undefined
  const meaning = MEANINGS[params.arguments.word]
  return { content: [{ type: 'text', text: meaning ?? 'There is no such word.' }], isError: meaning === undefined }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  if (message.id === undefined) continue // a notification
  const result = answer(message)
  const outcome = result ? { result } : { error: { code: -32601, message: `There is no ${message.method}.` } }
  console.log(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...outcome }))
}
