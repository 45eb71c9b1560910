/**
 * Tests of the traces that a collector receives: the span tree, the attributes, content only if it is enabled, and no
 * effect on runs if the collector is down.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { openFakeMcp } from '../mcp/fake-mcp.ts'
import { type Server, type ServerOptions, startServer } from '../support/server.ts'
import { type Collector, openCollector, type ReceivedSpan } from './collector.ts'

const INSTRUCTION = 'words-of-a-caller'
const OUTPUT = 'words-of-a-tool'
const ANSWER = 'words-of-a-model'
const SERVER_KIND = 2
const CLIENT_KIND = 3
const ERROR = 2

let provider: FakeProvider
let collector: Collector
let server: Server | undefined
beforeEach(async () => {
  provider = await openFakeProvider()
  collector = await openCollector()
})
afterEach(async () => {
  if (server?.process.exitCode === null) await server.stop()
  server = undefined
  await provider.close()
  await collector.close()
})

async function start(env: Record<string, string> = {}, options: ServerOptions = {}): Promise<Server> {
  const otel = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }
  server = await startServer({ provider, env: { ...otel, ...env }, ...options })
  return server
}

/** Stops the server, which then sends its remaining spans. Returns a function that finds received spans by name. */
async function stopAndRead(): Promise<(name: string) => ReceivedSpan[]> {
  expect(await server!.stop()).toBe(0)
  return (name) => collector.spans.filter((span) => span.name === name)
}

const USE_A_TOOL = {
  toolCalls: [{ name: 'code_execution', args: { code: `print("${OUTPUT}")` }, id: 'call_7' }],
  usage: { input: 100, output: 20, cachedInput: 40, reasoning: 8 },
}

test('a run is a tree of spans below the request’s span, in the caller’s trace', async () => {
  const { post } = await start({ OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test' })
  provider.when(INSTRUCTION, USE_A_TOOL, { text: ANSWER, usage: false })
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const callerSpan = 'b7ad6b7169203331'
  const { body, headers } = await post(
    '/v1beta/interactions',
    { instruction: INSTRUCTION, tools: ['code_execution'] },
    { traceparent: `00-${traceId}-${callerSpan}-01` },
  )
  expect(body.output).toBe(ANSWER)
  const named = await stopAndRead()

  const [request] = named('POST /v1beta/interactions')
  expect(request).toMatchObject({ traceId, parentSpanId: callerSpan, kind: SERVER_KIND, status: 0 })
  expect(request!.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.route': '/v1beta/interactions',
    'http.response.status_code': 200,
    'errand.request.id': headers.get('x-request-id'),
  })
  expect(request!.resource).toMatchObject({ 'service.name': 'errand', 'deployment.environment.name': 'test' })
  const [agent] = named('invoke_agent')
  expect(agent).toMatchObject({ traceId, parentSpanId: request!.spanId, status: 0 })
  expect(agent!.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': body.id,
    'gen_ai.request.model': 'svc-3.5-flash',
    'gen_ai.response.finish_reasons': ['end_turn'],
    'gen_ai.usage.input_tokens': body.usage.input_tokens,
    'gen_ai.usage.output_tokens': body.usage.output_tokens,
    'errand.interaction.status': 'completed',
    'errand.run.epoch': 1,
  })
  const chats = named('chat fake')
  expect(chats.map(({ attributes }) => attributes['gen_ai.response.finish_reasons'])).toEqual([
    ['tool_calls'],
    ['stop'],
  ])
  expect(chats[0]).toMatchObject({ kind: CLIENT_KIND })
  expect(chats[0]!.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai-compatible',
    'gen_ai.request.model': 'fake',
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 20,
    'gen_ai.usage.cache_read.input_tokens': 40,
    'gen_ai.usage.reasoning.output_tokens': 8,
  })
  const [tool] = named('execute_tool code_execution')
  expect(tool!.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'code_execution',
    'gen_ai.tool.call.id': 'call_7',
    'gen_ai.tool.type': 'function',
  })
  for (const child of [...chats, tool!, ...named('open_sandbox'), ...named('settle')]) {
    expect(child).toMatchObject({ traceId, parentSpanId: agent!.spanId })
    expect(child.startNs, child.name).toBeGreaterThanOrEqual(agent!.startNs)
    expect(child.endNs, child.name).toBeLessThanOrEqual(agent!.endNs)
    expect(child.endNs, child.name).toBeGreaterThanOrEqual(child.startNs)
  }
  expect(named('open_sandbox')).toHaveLength(1)
  expect(named('settle')).toHaveLength(1)
  // Content is not sent unless it is enabled.
  const sent = collector.requests.map((each) => each.body.toString()).join()
  for (const words of [INSTRUCTION, OUTPUT, ANSWER, server!.key]) expect(sent.includes(words), words).toBe(false)
})

test('the span of a failed run has its error, and the span of a canceled run its status', async () => {
  const { post } = await start()
  provider.when('[failing]', { fault: 'status:400' })
  await post('/v1beta/interactions', { instruction: 'please [failing]' })
  let release = () => {}
  const hold = new Promise<void>((resolve) => {
    release = resolve
  })
  provider.when('[held]', { text: ANSWER, hold })
  const { body } = await post('/v1beta/interactions', { instruction: 'wait [held]', background: true })
  await provider.received(2)
  expect((await post(`/v1beta/interactions/${body.interactionId}:cancel`)).status).toBe(200)
  release()
  const named = await stopAndRead()
  const [failed, cancelled] = named('invoke_agent')
  expect(failed).toMatchObject({ status: ERROR, attributes: { 'error.type': 'model_error' } })
  expect(failed!.attributes).toMatchObject({ 'errand.interaction.status': 'failed', 'errand.run.left': 'ended' })
  expect(cancelled).toMatchObject({ status: 0 })
  expect(cancelled!.attributes).toMatchObject({
    'errand.interaction.status': 'cancelled',
    'errand.run.left': 'cancelled',
  })
  expect(cancelled!.attributes).not.toHaveProperty('error.type')
  const kinds = named('chat fake').map(({ status, attributes }) => [status, attributes['error.type']])
  expect(kinds).toEqual([
    [ERROR, 'refused'],
    [ERROR, 'aborted'],
  ])
  const [request] = named('POST /v1beta/interactions')
  expect(request).toMatchObject({ status: ERROR, attributes: { 'error.type': '500' } })
})

test('a run that another worker resumes stays in the same trace', async () => {
  const first = await start({ ERRAND_DRAIN_S: '0' })
  let release = () => {}
  const hold = new Promise<void>((resolve) => {
    release = resolve
  })
  provider.when('[long]', { text: ANSWER, hold })
  const { body } = await first.post('/v1beta/interactions', { instruction: 'long [long]', background: true })
  await provider.received(1)
  const { dataDir, key } = first
  // On SIGTERM the server hands the run over and sends its spans.
  first.process.kill('SIGTERM')
  await new Promise((resolve) => first.process.once('exit', resolve))
  release()
  const second = await start({}, { dataDir, key })
  await (await second.stream(`/v1beta/interactions/${body.interactionId}:stream`)).all()
  const named = await stopAndRead()
  const runs = named('invoke_agent')
  expect(runs.map(({ attributes }) => attributes['errand.run.epoch'])).toEqual([1, 2])
  expect(runs.map(({ attributes }) => attributes['errand.run.left'])).toEqual(['shutdown', 'ended'])
  const [request] = named('POST /v1beta/interactions')
  for (const run of runs) expect(run).toMatchObject({ traceId: request!.traceId, parentSpanId: request!.spanId })
})

test('spans contain messages and tool content if the standard variable enables it', async () => {
  const { post } = await start({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'SPAN_ONLY' })
  provider.when(INSTRUCTION, USE_A_TOOL, { text: ANSWER })
  const body = { instruction: INSTRUCTION, systemInstruction: 'be brief', tools: ['code_execution'] }
  await post('/v1beta/interactions', body)
  const named = await stopAndRead()
  const [, chat] = named('chat fake')
  const shown = (name: string) => JSON.parse(chat!.attributes[name] as string)
  expect(JSON.stringify(shown('gen_ai.system_instructions'))).toContain('be brief')
  expect(shown('gen_ai.input.messages')).toEqual([
    { role: 'user', parts: [{ type: 'text', content: expect.stringContaining(INSTRUCTION) }] },
    {
      role: 'assistant',
      parts: [{ type: 'tool_call', id: 'call_7', name: 'code_execution', arguments: { code: `print("${OUTPUT}")` } }],
    },
    {
      role: 'tool',
      parts: [{ type: 'tool_call_response', id: 'call_7', response: expect.stringContaining(OUTPUT) }],
    },
  ])
  expect(shown('gen_ai.output.messages')).toEqual([
    { role: 'assistant', parts: [{ type: 'text', content: ANSWER }], finish_reason: 'stop' },
  ])
  const [tool] = named('execute_tool code_execution')
  expect(tool!.attributes['gen_ai.tool.call.arguments']).toContain(OUTPUT)
  expect(tool!.attributes['gen_ai.tool.call.result']).toContain(OUTPUT)
})

test('secrets of the run are redacted from content', async () => {
  const token = 'planted-tok-6c9d0f'
  const mcp = await openFakeMcp()
  mcp.onCall = ({ headers }) => `you sent ${headers.authorization}`
  const { post } = await start(
    { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' },
    {
      config: {
        models: { 'svc-3.5-flash': { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' } },
        egress: { allowPrivate: [mcp.address] },
      },
    },
  )
  const call = { name: 'tracker__say', args: { text: `is it ${token}?` } }
  provider.when(INSTRUCTION, { toolCalls: [call] }, { text: `It is ${token}.` })
  const servers = [{ name: 'tracker', url: mcp.url, authentication: token }]
  await post('/v1beta/interactions', { instruction: INSTRUCTION, mcp: servers })
  const named = await stopAndRead()
  await mcp.close()
  const [tool] = named('execute_tool tracker__say')
  expect(tool!.attributes['gen_ai.tool.call.arguments']).toBe('{"text":"is it [secret]?"}')
  expect(tool!.attributes['gen_ai.tool.call.result']).toContain('you sent Bearer [secret]')
  const [, chat] = named('chat fake')
  expect(chat!.attributes['gen_ai.output.messages']).toContain('It is [secret].')
  for (const { body } of collector.requests) expect(body.includes(token)).toBe(false)
})

test('sends protobuf by default, with the headers of the standard variable, which are never logged', async () => {
  const { post } = await start({
    OTEL_EXPORTER_OTLP_PROTOCOL: '',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20token-of-the-collector',
    ERRAND_LOG: 'debug',
  })
  provider.when(INSTRUCTION, { text: ANSWER })
  await post('/v1beta/interactions', { instruction: INSTRUCTION })
  await stopAndRead()
  const [sent] = collector.requests
  expect(sent!.url).toBe('/v1/traces')
  expect(sent!.headers).toMatchObject({
    'content-type': 'application/x-protobuf',
    authorization: 'Bearer token-of-the-collector',
  })
  expect(sent!.body.includes('invoke_agent')).toBe(true)
  expect(server!.output()).not.toContain('token-of-the-collector')
})

test('a request whose caller does not sample its trace is not traced', async () => {
  const { post } = await start()
  provider.when(INSTRUCTION, { text: ANSWER })
  const unsampled = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' }
  await post('/v1beta/interactions', { instruction: INSTRUCTION }, unsampled)
  await post('/v1beta/interactions', { instruction: INSTRUCTION })
  const named = await stopAndRead()
  expect(named('invoke_agent')).toHaveLength(1)
  expect(named('POST /v1beta/interactions')).toHaveLength(1)
})

test('a collector that is down or never responds affects neither runs nor shutdown', async () => {
  const mute = await openCollector({ mute: true })
  provider.when(INSTRUCTION, USE_A_TOOL, { text: ANSWER })
  for (const endpoint of ['http://127.0.0.1:9', mute.url]) {
    const { post, output } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
    const { body } = await post('/v1beta/interactions', { instruction: INSTRUCTION, tools: ['code_execution'] })
    expect(body.output).toBe(ANSWER)
    await stopAndRead()
    expect(output()).not.toContain('unhandled')
  }
  expect(mute.requests.length).toBeGreaterThan(0)
  await mute.close()
})
