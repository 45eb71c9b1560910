/**
 * The bare limit: what a plain Node server costs that makes the same two upstream calls with undici and writes the same
 * events, storing nothing, knowing nobody.
 *
 *     node bench/bare.ts PROVIDER_PORT      prints its port
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

// More than are ever held at once.
const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 10_000, pipelining: 1 })

async function turn(messages: readonly object[], onData: (data: string) => void): Promise<void> {
  const { body } = await pool.request({
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'fake', stream: true, messages }),
  })
  let rest = ''
  for await (const bytes of body) {
    const lines = (rest + bytes).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: ') && line !== 'data: [DONE]') onData(line.slice(6))
  }
}

const server = createServer((request, response) => {
  if (request.method === 'GET') return void response.end('ok')
  const parts: Buffer[] = []
  request.on('data', (bytes) => parts.push(bytes))
  request.on('end', async () => {
    const { instruction } = JSON.parse(Buffer.concat(parts).toString())
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (event: string, data: object) => response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    const messages: object[] = [{ role: 'user', content: instruction }]
    await turn(messages, (data) => {
      const call = JSON.parse(data).choices[0]?.delta?.tool_calls?.[0]
      if (!call) return
      send('tool_call', { step: 1, name: call.function.name, args: JSON.parse(call.function.arguments) })
      messages.push({ role: 'assistant', tool_calls: [call] })
    })
    send('tool_result', { step: 2, output: 'done', duration_ms: 0 })
    messages.push({ role: 'tool', tool_call_id: 'call_1', content: 'done' })
    await turn(messages, (data) => {
      const text = JSON.parse(data).choices[0]?.delta?.content
      if (text) send('partial_output', { text })
    })
    send('completed', { status: 'completed' })
    response.end()
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
