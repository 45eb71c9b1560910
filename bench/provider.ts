/**
 * The fake provider of the bench, in a process of its own: an OpenAI-compatible server without delay. A conversation
 * without a tool result gets one tool call, one with a result gets 40 text fragments; both as bytes made beforehand.
 *
 *     node bench/provider.ts [fragments|burst]      prints its port
 *
 * `fragments`: each fragment is a write of its own; `burst`: all in one.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const FRAGMENTS = 40
const TOOL = process.env.BENCH_TOOL ?? 'lookup'
const ARGUMENTS = process.env.BENCH_ARGUMENTS ?? '{"query":"answer"}'
const burst = process.argv[2] === 'burst'

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'fake', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const usage = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'fake', choices: [], usage: { prompt_tokens: 50, completion_tokens: 40, total_tokens: 90 } })}\n\n`
const DONE = 'data: [DONE]\n\n'

const call = { index: 0, id: 'call_1', type: 'function', function: { name: TOOL, arguments: ARGUMENTS } }
const toolTurn = [
  chunk({ role: 'assistant', content: null, tool_calls: [call] }) + chunk({}, 'tool_calls') + usage + DONE,
]
const fragments = Array.from({ length: FRAGMENTS }, (_, i) => chunk({ content: `fragment ${i} ` }))
const answerTurn = [...fragments, chunk({}, 'stop') + usage + DONE]

function write(response: ServerResponse, parts: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (burst) return void response.end(parts.join(''))
  let next = 0
  const step = () => {
    if (next === parts.length) return void response.end()
    response.write(parts[next++]!)
    setImmediate(step)
  }
  step()
}

const server = createServer((request, response) => {
  const body: Buffer[] = []
  request.on('data', (bytes) => body.push(bytes))
  request.on('end', () => write(response, Buffer.concat(body).includes('"role":"tool"') ? answerTurn : toolTurn))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
