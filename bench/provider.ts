/**
 * The fake provider of the benchmarks, a separate process: an OpenAI-compatible server without delay. A conversation without a tool
 * result gets one call of the first offered tool of TOOLS; one with a result gets 40 text fragments, each in a write of its own.
 * All responses are prepared in advance.
 *
 *     node bench/provider.ts [MILLISECONDS]      prints its port; MILLISECONDS delays each response
 *
 * If the conversation contains `[hold]`, the response pauses after HELD_AT fragments until a request for `/release`.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { FRAGMENTS, HELD_AT } from './dialects.ts'

const TOOLS = [
  { name: 'code_execution', args: { code: 'print(6 * 7)', language: 'python' } },
  { name: 'lookup', args: { query: 'answer' } },
  { name: 'skill', args: { name: 'lookup' } },
]
const delayMs = Number(process.argv[2] ?? 0)

const event = (fields: object) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'fake', ...fields })}\n\n`
const chunk = (delta: object, finish: string | null = null) =>
  event({ choices: [{ index: 0, delta, finish_reason: finish }] })
const usage = event({ choices: [], usage: { prompt_tokens: 50, completion_tokens: 40, total_tokens: 90 } })
const DONE = 'data: [DONE]\n\n'

const toolTurns = TOOLS.map(({ name, args }) => {
  const call = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: JSON.stringify(args) } }
  const text = chunk({ role: 'assistant', content: null, tool_calls: [call] }) + chunk({}, 'tool_calls') + usage + DONE
  return { offered: `"name":"${name}"`, parts: [text] }
})
const fragments = Array.from({ length: FRAGMENTS }, (_, i) => chunk({ content: `fragment ${i} ` }))
const answerTurn = [...fragments, chunk({}, 'stop') + usage + DONE]

let held = Promise.withResolvers<void>()

async function write(response: ServerResponse, request: Buffer): Promise<void> {
  const answers = request.includes('"role":"tool"')
  const parts = answers
    ? answerTurn
    : (toolTurns.find(({ offered }) => request.includes(offered)) ?? toolTurns.at(-1)!).parts
  const holdAt = answers && request.includes('[hold]') ? HELD_AT : undefined
  if (delayMs > 0) await sleep(delayMs)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let next = 0
  const step = () => {
    if (next === parts.length) return void response.end()
    response.write(parts[next++]!)
    if (next === holdAt) void held.promise.then(() => setImmediate(step))
    else setImmediate(step)
  }
  step()
}

const server = createServer((request, response) => {
  if (request.url === '/release') {
    held.resolve()
    held = Promise.withResolvers()
    return void response.end()
  }
  const body: Buffer[] = []
  request.on('data', (bytes) => body.push(bytes))
  request.on('end', () => void write(response, Buffer.concat(body)))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
