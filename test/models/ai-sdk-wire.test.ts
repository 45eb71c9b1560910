/** Tests of the AI SDK client against streams written by hand: what it sends back to providers, and how it fails. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AssistantMessage, type Message, userText } from '../../src/domain/message.ts'
import { type AiSdkOptions, createAiSdkModel } from '../../src/models/ai-sdk.ts'
import type { Model, ModelRequest } from '../../src/models/port.ts'
import {
  AI_SDK_PROVIDERS,
  type AiSdkName,
  ask,
  call,
  DICE_TOOL,
  failureOf,
  messageOf,
  openDispatcher,
  recordedTiming,
} from './calling.ts'

interface Received {
  readonly url: string
  readonly headers: IncomingMessage['headers']
  // Each test reads the format of its own provider.
  // biome-ignore lint/suspicious/noExplicitAny: read by path in the tests
  readonly body: any
  readonly closed: Promise<unknown>
}
type Answer = (response: ServerResponse) => void

const dispatcher = openDispatcher()
const received: Received[] = []
const answers: Answer[] = []
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = JSON.parse(Buffer.concat(chunks).toString())
  const closed = once(response, 'close')
  received.push({ url: request.url ?? '', headers: request.headers, body, closed })
  answers.shift()?.(response)
})
let url = ''

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  received.length = answers.length = 0
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await dispatcher.destroy()
})

/** Idle timeout of tests about silence. Other tests have the default: a busy machine is no silent provider. */
const SHORT_IDLE_MS = 150

function modelOf(provider: AiSdkName, model: string, rest: Partial<AiSdkOptions> = {}): Model {
  const timing = recordedTiming()
  const common = { apiKey: 'key', apiKeyEnv: 'THE_KEY', dispatcher, timing, baseUrl: `${url}/v1`, env: {} }
  return createAiSdkModel({ name: 'm', provider: AI_SDK_PROVIDERS[provider], model, ...common, ...rest })
}
const claude = (rest: Partial<AiSdkOptions> = {}) => modelOf('anthropic', 'claude-opus-5-5', rest)

function events(...list: object[]): string {
  return list.map((data) => `event: ${(data as { type?: string }).type}\ndata: ${JSON.stringify(data)}\n\n`).join('')
}

function stream(text: string, then: Answer = (response) => response.end()): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(text)
    then(response)
  }
}

const CLAUDE_START = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'claude-opus-5-5',
    stop_reason: null,
    usage: { input_tokens: 5, cache_read_input_tokens: 20, cache_creation_input_tokens: 2, output_tokens: 1 },
  },
}
const block = (index: number, content_block: object, ...deltas: object[]) => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const CLAUDE_TEXT = block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Half' })
const CLAUDE_END = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 42 } },
  { type: 'message_stop' },
]

/** The conversation after `model` called a tool and had its result. */
async function afterToolCall(model: Model, request: ModelRequest): Promise<ModelRequest> {
  const { outcome } = await call(model, request)
  const spoken = messageOf(outcome)
  const results = spoken.content.flatMap((part): Message[] =>
    part.type === 'tool_call' ? [{ role: 'tool', callId: part.callId, name: part.name, output: 'done' }] : [],
  )
  // The store keeps messages as JSON.
  const messages = JSON.parse(JSON.stringify([...request.messages, spoken, ...results])) as Message[]
  return { ...request, messages }
}

describe('sends back to a provider, after the store', () => {
  test("Anthropic's signed and redacted thinking", async () => {
    const toolUse = { type: 'tool_use', id: 'toolu_1', name: 'roll_dice', input: {} }
    answers.push(
      stream(
        events(
          CLAUDE_START,
          ...block(
            0,
            { type: 'thinking', thinking: '', signature: '' },
            { type: 'thinking_delta', thinking: 'I roll.' },
            { type: 'signature_delta', signature: 'SIGNED' },
          ),
          ...block(1, { type: 'redacted_thinking', data: 'HIDDEN' }),
          ...block(
            2,
            toolUse,
            { type: 'input_json_delta', partial_json: '{"sides":' },
            { type: 'input_json_delta', partial_json: '6}' },
          ),
          { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 42 } },
          { type: 'message_stop' },
        ),
      ),
      stream(events(CLAUDE_START, ...CLAUDE_TEXT, ...CLAUDE_END)),
    )
    const model = claude()
    const { outcome } = await call(model, await afterToolCall(model, ask('Roll', { tools: [DICE_TOOL] })))
    expect(outcome).toMatchObject({ ok: true, tokens: { input: 27, output: 42, cachedInput: 20, cacheWrite: 2 } })
    expect(received[0]!.body.thinking).toEqual({ type: 'adaptive', display: 'summarized' })
    expect(received[1]!.body.messages.slice(1)).toMatchObject([
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'I roll.', signature: 'SIGNED' },
          { type: 'redacted_thinking', data: 'HIDDEN' },
          { type: 'tool_use', id: 'toolu_1', name: 'roll_dice', input: { sides: 6 } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1' }] },
    ])
  })

  test("Gemini's thought signatures", async () => {
    const chunk = (parts: object[], finishReason?: string) =>
      `data: ${JSON.stringify({
        candidates: [{ content: { role: 'model', parts }, finishReason }],
        usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 3, thoughtsTokenCount: 4, totalTokenCount: 15 },
      })}\n\n`
    answers.push(
      stream(
        chunk([{ text: 'Thinking of dice.', thought: true }]) +
          chunk([{ functionCall: { name: 'roll_dice', args: { sides: 6 } }, thoughtSignature: 'SIGNED' }], 'STOP'),
      ),
      stream(chunk([{ text: 'Done.' }], 'STOP')),
    )
    const model = modelOf('google', 'gemini-3.8-flash')
    const request = await afterToolCall(model, ask('Roll', { tools: [DICE_TOOL] }))
    expect(await call(model, request)).toMatchObject({
      text: 'Done.',
      outcome: { ok: true, tokens: { input: 8, output: 7, reasoning: 4 } },
    })
    expect(received[0]!.body.generationConfig.thinkingConfig).toEqual({ includeThoughts: true })
    expect(received[0]!.headers['x-goog-api-key']).toBe('key')
    const model_turn = received[1]!.body.contents[1]
    expect(model_turn.parts.at(-1)).toMatchObject({
      functionCall: { name: 'roll_dice', args: { sides: 6 } },
      thoughtSignature: 'SIGNED',
    })
  })

  test.each(['openai', 'azure'] as const)('encrypted reasoning of %s, with storing turned off', async (provider) => {
    const reasoning = { id: 'rs_1', type: 'reasoning', encrypted_content: null, summary: [] }
    const item = {
      id: 'fc_1',
      type: 'function_call',
      call_id: 'call_1',
      name: 'roll_dice',
      arguments: '',
      status: 'in_progress',
    }
    const response = { id: 'resp_1', created_at: 0, model: 'gpt-6-luna' }
    const usage = {
      input_tokens: 9,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 6,
      output_tokens_details: { reasoning_tokens: 2 },
    }
    const completed = { type: 'response.completed', response: { ...response, incomplete_details: null, usage } }
    answers.push(
      stream(
        events(
          { type: 'response.created', response },
          { type: 'response.output_item.added', output_index: 0, item: reasoning },
          { type: 'response.output_item.done', output_index: 0, item: { ...reasoning, encrypted_content: 'SEALED' } },
          { type: 'response.output_item.added', output_index: 1, item },
          { type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 1, delta: '{"sides":6}' },
          {
            type: 'response.output_item.done',
            output_index: 1,
            item: { ...item, arguments: '{"sides":6}', status: 'completed' },
          },
          completed,
        ),
      ),
      stream(events({ type: 'response.created', response }, completed)),
    )
    const model = modelOf(provider, 'gpt-6-luna')
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const request = await afterToolCall(
      model,
      ask('Roll', { tools: [DICE_TOOL], responseFormat: schema, maxOutputTokens: 3 }),
    )
    const { outcome } = await call(model, request)
    expect(outcome.tokens).toEqual({ input: 9, output: 6, cachedInput: 4, reasoning: 2 })
    expect(received[0]!.body).toMatchObject({
      store: false,
      include: ['reasoning.encrypted_content'],
      max_output_tokens: 16,
      text: { format: { type: 'json_schema', name: 'answer', strict: false, schema } },
    })
    expect(received[1]!.body.input).toMatchObject([
      { role: 'user' },
      { type: 'reasoning', encrypted_content: 'SEALED' },
      { type: 'function_call', call_id: 'call_1', arguments: '{"sides":6}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'done' },
    ])
  })

  test('images and documents of a user and of a tool result', async () => {
    const image = { type: 'image', mimeType: 'image/png', base64: 'iVBORw0KGgo=' } as const
    const report = { type: 'document', mimeType: 'application/pdf', base64: 'JVBERi0xLjcK', name: 'r.pdf' } as const
    answers.push(stream(events(CLAUDE_START, ...CLAUDE_TEXT, ...CLAUDE_END)))
    const messages: Message[] = [
      {
        role: 'user',
        content: [{ type: 'text', text: 'Look' }, image],
      },
      {
        role: 'assistant',
        content: [{ type: 'tool_call', callId: 'a', name: 'roll_dice', argsText: '{', args: undefined }],
      },
      { role: 'tool', callId: 'a', name: 'roll_dice', output: 'See:', media: [image, report] },
    ]
    await call(claude(), ask('', { messages, tools: [DICE_TOOL] }))
    const source = { type: 'base64', media_type: 'image/png', data: image.base64 }
    const [user, assistant, tool] = received[0]!.body.messages
    expect(user.content).toMatchObject([{ type: 'text' }, { type: 'image', source }])
    expect(assistant.content).toMatchObject([{ type: 'tool_use', input: {} }])
    expect(tool.content[0].content).toMatchObject([
      { type: 'text', text: 'See:' },
      { type: 'image', source },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: report.base64 } },
    ])
  })

  test.each([
    [
      'openai',
      'gpt-6-sol',
      ({ input }) => input.find(({ type }: { type: string }) => type === 'function_call_output').output,
    ],
    ['google', 'gemini-3.8-flash', ({ contents }) => contents.at(-1).parts[0].functionResponse],
    ['bedrock', 'eu.anthropic.claude-opus-5-5', ({ messages }) => messages.at(-1).content[0].toolResult.content],
  ] as const satisfies [AiSdkName, string, (body: Received['body']) => unknown][])(
    'an image and a document of a tool result, to %s',
    async (provider, model, resultIn) => {
      const messages: Message[] = [
        userText('Look'),
        {
          role: 'assistant',
          content: [{ type: 'tool_call', callId: 'a', name: 'file_read', argsText: '{}', args: {} }],
        },
        {
          role: 'tool',
          callId: 'a',
          name: 'file_read',
          output: 'See:',
          media: [
            { type: 'image', mimeType: 'image/png', base64: 'iVBORw0KGgo=' },
            { type: 'document', mimeType: 'application/pdf', base64: 'JVBERi0xLjcK', name: 'r.pdf' },
          ],
        },
      ]
      answers.push((response) => response.writeHead(400).end('{}'))
      await call(
        modelOf(provider, model, { env: { AWS_REGION: 'eu-west-1' } }),
        ask('', { messages, tools: [DICE_TOOL] }),
      )
      const told = JSON.stringify(resultIn(received[0]!.body))
      for (const part of ['See:', 'iVBORw0KGgo=', 'JVBERi0xLjcK']) expect(told).toContain(part)
    },
  )

  test('the results of parallel calls in one message', async () => {
    answers.push((response) => response.writeHead(400).end())
    const made = (callId: string) =>
      ({ type: 'tool_call', callId, name: 'roll_dice', argsText: '{}', args: {} }) as const
    const messages: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'Roll two' }] },
      { role: 'assistant', content: [made('a'), made('b')] },
      { role: 'tool', callId: 'a', name: 'roll_dice', output: '1' },
      { role: 'tool', callId: 'b', name: 'roll_dice', output: '2' },
    ]
    await call(modelOf('google', 'gemini-3.8-flash'), ask('', { messages, tools: [DICE_TOOL] }))
    const { contents } = received[0]!.body
    expect(contents).toHaveLength(3)
    expect(contents[2].parts.map((part: { functionResponse: unknown }) => part.functionResponse)).toHaveLength(2)
  })

  test('the key to Azure in its own header', async () => {
    answers.push((response) => response.writeHead(400).end('{}'))
    await call(modelOf('azure', 'gpt-6-sol'), ask('Hi'))
    expect(received[0]).toMatchObject({ url: '/v1/responses', headers: { 'api-key': 'key' } })
    expect(received[0]!.headers).not.toHaveProperty('authorization')
  })

  test('a signature to Bedrock with signing keys, else the bearer token', async () => {
    const refuse: Answer = (response) => response.writeHead(400).end('{"message":"no"}')
    answers.push(refuse, refuse)
    const keys = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'hidden', AWS_SESSION_TOKEN: 'session' }
    const env = { AWS_REGION: 'eu-west-1' }
    await call(modelOf('bedrock', 'm', { env: { ...env, ...keys }, apiKey: undefined }), ask('Hi'))
    await call(modelOf('bedrock', 'm', { env }), ask('Hi'))
    expect(received.map(({ headers }) => headers.authorization)).toEqual([
      expect.stringMatching(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d+\/eu-west-1\/bedrock\//),
      'Bearer key',
    ])
  })
})

describe('prompt caching', () => {
  const cache = { key: 'int_1', long: false }
  const conversation: Message[] = [
    userText('Roll.'),
    { role: 'assistant', content: [{ type: 'tool_call', callId: 'c1', name: 'roll_dice', args: {}, argsText: '{}' }] },
    { role: 'tool', callId: 'c1', name: 'roll_dice', output: '6' },
  ]
  async function sent(
    provider: AiSdkName,
    model: string,
    options: Partial<AiSdkOptions>,
    cached: ModelRequest['cache'],
  ) {
    answers.push((response) => response.writeHead(400).end('{}'))
    const request = ask('', { system: 'Be exact.', messages: conversation, tools: [DICE_TOOL], cache: cached })
    await call(modelOf(provider, model, options), request)
    return received.at(-1)!.body
  }

  test.each([
    ['anthropic', 'claude-opus-5-5', '"cache_control":{"type":"ephemeral"}', 3],
    ['bedrock', 'us.anthropic.claude-opus-5-5', '"cachePoint":{"type":"default"}', 3],
    ['bedrock', 'meta.llama4-maverick-17b-instruct-v1:0', 'cachePoint', 0],
    ['openai', 'gpt-6-sol', '"prompt_cache_key":"int_1"', 1],
    ['azure', 'gpt-6-sol', '"prompt_cache_key":"int_1"', 1],
    ['google', 'gemini-3-pro', 'cache', 0],
  ] as const)('%s, %s: %s is sent %i times, and never with cache: off', async (provider, model, mark, times) => {
    expect(JSON.stringify(await sent(provider, model, {}, cache)).split(mark)).toHaveLength(times + 1)
    expect(JSON.stringify(await sent(provider, model, { cache: 'off' }, cache))).not.toMatch(/cache/i)
    expect(JSON.stringify(await sent(provider, model, {}, undefined))).not.toMatch(/cache/i)
  })

  test('Anthropic marks the system prompt, the request before the last answer, and this one', async () => {
    const body = await sent('anthropic', 'claude-opus-5-5', {}, cache)
    const marked = (block: { cache_control?: object }) => block.cache_control !== undefined
    expect(body.system.map(marked)).toEqual([true])
    expect(body.messages.map(({ content }: { content: object[] }) => content.map(marked))).toEqual([
      [true],
      [false],
      [true],
    ])
  })

  test('Anthropic keeps a prefix for an hour if people decide on tool calls in between', async () => {
    const body = await sent('anthropic', 'claude-opus-5-5', {}, { ...cache, long: true })
    expect(body.system[0].cache_control).toEqual({ type: 'ephemeral', ttl: '1h' })
  })
})

describe('leaves out what the provider does not accept', () => {
  const refuse: Answer = (response) => response.writeHead(400).end('{}')
  const env = { AWS_REGION: 'eu-west-1' }
  const sentFor = async (provider: AiSdkName, model: string, earlier: AssistantMessage) => {
    answers.push(refuse)
    const messages: Message[] = [userText('Roll'), earlier, userText('Go on')]
    await call(modelOf(provider, model, { env }), ask('', { messages, tools: [DICE_TOOL] }))
    return received[0]!.body
  }
  const [thought, said, called] = [
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'Well.' },
    { type: 'tool_call', callId: 'a', name: 'roll_dice', argsText: '{}', args: {} },
  ] as const

  // The call of an interaction that ended before the call's result is removed.
  test("OpenAI's reasoning whose call was removed", async () => {
    const provider = (itemId: string) => ({ openai: { itemId, reasoningEncryptedContent: `SEALED ${itemId}` } })
    const content = [{ ...thought, provider: provider('rs_1') }, said, { ...thought, provider: provider('rs_2') }]
    const { input } = await sentFor('openai', 'gpt-6-sol', { role: 'assistant', content })
    expect(input).toEqual([
      { role: 'user', content: [{ type: 'input_text', text: 'Roll' }] },
      expect.objectContaining({ type: 'reasoning', encrypted_content: 'SEALED rs_1' }),
      { role: 'assistant', content: 'Well.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Go on' }] },
    ])
  })

  test("Anthropic's thinking at the end of a message", async () => {
    const content = [said, { ...thought, provider: { anthropic: { signature: 'SIGNED' } } }]
    const { messages } = await sentFor('anthropic', 'claude-opus-5-5', { role: 'assistant', content })
    expect(messages[1]).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'Well.' }] })
  })

  test.each([
    ['openai', 'gpt-6-sol', 'input'],
    ['anthropic', 'claude-opus-5-5', 'messages'],
    ['google', 'gemini-3.8-flash', 'contents'],
    ['bedrock', 'eu.anthropic.claude-opus-5-5', 'messages'],
  ] as const)('a message in which nothing is left for %s', async (provider, model, field) => {
    const foreign = { ...thought, provider: { another: { signature: 'SIGNED' } } }
    const body = await sentFor(provider, model, { role: 'assistant', content: [foreign, { type: 'text', text: ' ' }] })
    const sent = JSON.stringify(body[field])
    expect(sent).toMatch(/Roll.*Go on/s)
    expect(sent).not.toMatch(/assistant|"model"|Hm/)
  })

  test('nothing of a complete message', async () => {
    const content = [{ ...thought, provider: { google: { thoughtSignature: 'SIGNED' } } }, thought, called]
    answers.push(refuse)
    const result = { role: 'tool', callId: 'a', name: 'roll_dice', output: 'six' } as const
    const messages: Message[] = [userText('Roll'), { role: 'assistant', content }, result]
    await call(modelOf('google', 'gemini-3.8-flash'), ask('', { messages, tools: [DICE_TOOL] }))
    expect(received[0]!.body.contents[1].parts).toMatchObject([
      { text: 'Hm.', thought: true, thoughtSignature: 'SIGNED' },
      { text: 'Hm.', thought: true },
      { functionCall: { name: 'roll_dice' } },
    ])
  })
})

describe('a failure', () => {
  const begun = events(CLAUDE_START, ...CLAUDE_TEXT)

  test.each<[string, Answer, string]>([
    ['a stream that ends early', stream(begun), 'truncated'],
    [
      'a connection that is reset',
      stream(begun, (response) => setTimeout(() => response.socket?.resetAndDestroy(), 20)),
      'truncated',
    ],
    ['a silence', stream(begun, () => {}), 'stalled'],
    [
      'an error event',
      stream(begun + events({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })),
      'overloaded',
    ],
    ['an event that is no JSON', stream(`${begun}event: x\ndata: {oops\n\n`), 'malformed'],
  ])('ends the call: %s after a fragment', async (_, answer, kind) => {
    answers.push(answer)
    const { outcome, text } = await call(claude(kind === 'stalled' ? { idleTimeoutMs: SHORT_IDLE_MS } : {}), ask('Go'))
    expect(text).toBe('Half')
    expect(failureOf(outcome).kind).toBe(kind)
    expect(received).toHaveLength(1)
  })

  test('retries after silence before the first fragment, and closes the connection', async () => {
    answers.push(() => {}, stream(events(CLAUDE_START, ...CLAUDE_TEXT, ...CLAUDE_END)))
    expect(await call(claude({ idleTimeoutMs: SHORT_IDLE_MS }), ask('Go'))).toMatchObject({
      text: 'Half',
      outcome: { ok: true, finish: 'stop' },
    })
    await received[0]!.closed
    expect(received).toHaveLength(2)
  })

  test('pings keep a slow call alive', async () => {
    answers.push(
      stream(events(CLAUDE_START), (response) => {
        let pings = 0
        const timer = setInterval(() => {
          response.write(events({ type: 'ping' }))
          if (++pings < 6) return
          clearInterval(timer)
          response.end(events(...CLAUDE_TEXT, ...CLAUDE_END))
        }, 100)
      }),
    )
    expect(await call(claude({ idleTimeoutMs: 400 }), ask('Go'))).toMatchObject({ text: 'Half', outcome: { ok: true } })
    expect(received).toHaveLength(1)
  })

  test('ends the call and closes its connection on abort', async () => {
    const abort = new AbortController()
    answers.push(stream(begun, () => abort.abort()))
    const { outcome } = await call(claude(), ask('Go'), abort.signal)
    expect(failureOf(outcome).kind).toBe('aborted')
    await received[0]!.closed
  })

  test('closes the connection of a failed call', async () => {
    const error = events({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    answers.push(stream(begun + error, () => {}))
    expect(failureOf((await call(claude(), ask('Go'))).outcome).kind).toBe('overloaded')
    await received[0]!.closed
  })

  test('is malformed if an HTML page comes', async () => {
    answers.push((response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Hello</html>'))
    const { outcome } = await call(claude({ maxTries: 1 }), ask('Go'))
    expect(['truncated', 'malformed']).toContain(failureOf(outcome).kind)
  })

  test('leaves out a token limit that the model refuses', async () => {
    const message = 'max_tokens: 1000 > 900, which is the maximum allowed number of output tokens'
    const error = { type: 'error', error: { type: 'invalid_request_error', message } }
    answers.push(
      (response) => response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error)),
      stream(events(CLAUDE_START, ...CLAUDE_TEXT, ...CLAUDE_END)),
    )
    expect((await call(claude(), ask('Go'))).outcome.ok).toBe(true)
    expect(received.map(({ body }) => body.max_tokens === 1000)).toEqual([true, false])
  })
})
