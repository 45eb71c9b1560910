/** Providers with the chat completions API and an address, key and dialect of their own. */
import { afterAll, describe, expect, test } from 'vitest'
import type { ModelConfig } from '../../src/config.ts'
import { type Message, toolCalls, userText } from '../../src/domain/message.ts'
import type { Model, ModelRequest } from '../../src/models/port.ts'
import { findProvider } from '../../src/models/providers/registry.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { ask, call, DICE_TOOL, messageOf, openDispatcher } from './calling.ts'

const dispatcher = openDispatcher()
afterAll(() => dispatcher.destroy())

async function open(options: Parameters<typeof openFakeProvider>[0] = {}) {
  const server = await openFakeProvider(options)
  return { ...server, [Symbol.asyncDispose]: server.close }
}

async function modelOf({ url }: FakeProvider, config: Partial<ModelConfig>): Promise<Model> {
  const full = { provider: 'mistral', model: 'm', baseUrl: url, apiKeyEnv: 'KEY', ...config } as const
  const opened = findProvider(full.provider)!.open!(full, { name: 'm', env: { KEY: 'key' }, client: { dispatcher } })
  if (typeof opened === 'string') throw new Error(opened)
  return opened()
}

const PNG = { type: 'image', mimeType: 'image/png', base64: 'iVBORw0KGgo=' } as const
const SCHEMA = { type: 'object', properties: { sum: { type: 'number' } } }

/** Rolls twice, shows the model an image of the last roll, and asks a second question that wants JSON. */
async function converse(model: Model, rest: Partial<ModelRequest> = {}): Promise<Message[]> {
  const messages: Message[] = [userText('Roll')]
  for (let turn = 0; turn < 2; turn++) {
    const message = messageOf((await call(model, ask('', { messages, tools: [DICE_TOOL], ...rest }))).outcome)
    const media = turn === 1 ? { media: [PNG] } : {}
    messages.push(message)
    for (const { callId, name } of toolCalls(message)) {
      messages.push({ role: 'tool', callId, name, output: 'six', ...media })
    }
  }
  messages.push(messageOf((await call(model, ask('', { messages, tools: [DICE_TOOL], ...rest }))).outcome))
  messages.push(userText('The sum'))
  const { outcome } = await call(model, ask('', { messages, responseFormat: SCHEMA, ...rest }))
  messages.push(messageOf(outcome))
  return messages
}

function scriptConversation(server: FakeProvider): void {
  const roll = { name: 'roll_dice', args: { sides: 6 } }
  server.script(
    { reasoning: 'I roll.', toolCalls: [{ ...roll, id: 'call_with_a_long_id' }] },
    { reasoning: 'Again.', toolCalls: [{ ...roll, id: 'abcdefgh1' }] },
    { reasoning: 'Done.', text: 'Twelve.' },
    { text: '{"sum": 12}' },
  )
}

describe('a conversation with tools, images and a response format is accepted by', () => {
  test.each(['mistral', 'groq', 'deepseek'] as const)('%s', async (provider) => {
    await using server = await open({ strict: provider, pairsCalls: true, wantsReasoning: provider === 'deepseek' })
    scriptConversation(server)
    const messages = await converse(await modelOf(server, { provider }), { cache: { key: 'int_1', long: false } })
    expect(messages.at(-1)).toMatchObject({ content: [{ type: 'text', text: '{"sum": 12}' }] })
    expect(server.requests.filter(({ refused }) => refused)).toEqual([])
  })
})

test('Mistral gets the same nine characters for a call and its result, and its own ids unchanged', async () => {
  await using server = await open({ strict: 'mistral' })
  scriptConversation(server)
  await converse(await modelOf(server, { provider: 'mistral' }))
  const { messages } = server.requests[2]!.body
  const ids = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
  expect(ids).toEqual([expect.stringMatching(/^[0-9a-f]{9}$/), 'abcdefgh1'])
  expect(messages.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(ids)
})

test.each([
  ['deepseek', false],
  ['groq', false],
  ['mistral', true],
  ['xai', true],
  ['openrouter', true],
] as const)('%s: the response format is a field: %s', async (provider, isField) => {
  await using server = await open()
  server.script({ text: '{}' })
  await call(await modelOf(server, { provider }), ask('Sum', { responseFormat: SCHEMA }))
  const { body } = server.requests[0]!
  expect(body.response_format !== undefined).toBe(isField)
  expect(JSON.stringify(body.messages).includes('JSON Schema')).toBe(!isField)
})

describe('prompt caching', () => {
  const conversation: Message[] = [
    userText('Roll.'),
    { role: 'assistant', content: [{ type: 'tool_call', callId: 'c1', name: 'roll_dice', args: {}, argsText: '{}' }] },
    { role: 'tool', callId: 'c1', name: 'roll_dice', output: '6' },
  ]
  async function sent(config: Partial<ModelConfig>, cache: ModelRequest['cache'] = { key: 'int_1', long: false }) {
    await using server = await open()
    server.script({ text: 'ok' })
    await call(await modelOf(server, config), ask('', { system: 'Be exact.', messages: conversation, cache }))
    return server.requests[0]!
  }

  test.each([
    ['mistral', { prompt_cache_key: 'int_1' }],
    ['openrouter', { session_id: 'int_1' }],
  ] as const)('%s gets the key of the conversation as %j', async (provider, fields) => {
    expect((await sent({ provider })).body).toMatchObject(fields)
    expect(JSON.stringify((await sent({ provider, cache: 'off' })).body)).not.toContain('int_1')
  })

  test('xAI gets the key of the conversation as a header', async () => {
    expect((await sent({ provider: 'xai' })).headers).toMatchObject({ 'x-grok-conv-id': 'int_1' })
    expect((await sent({ provider: 'xai', cache: 'off' })).headers).not.toHaveProperty('x-grok-conv-id')
  })

  test.each(['deepseek', 'groq'] as const)('%s gets nothing: it caches by itself', async (provider) => {
    const { body, headers } = await sent({ provider })
    expect(JSON.stringify({ body, headers })).not.toContain('int_1')
  })

  test('Claude on OpenRouter gets breakpoints', async () => {
    const config = { provider: 'openrouter', model: 'anthropic/claude-opus-5.5' } as const
    const short = { type: 'ephemeral' }
    expect((await sent(config)).body.messages).toEqual([
      { role: 'system', content: [{ type: 'text', text: 'Be exact.', cache_control: short }] },
      { role: 'user', content: [{ type: 'text', text: 'Roll.', cache_control: short }] },
      expect.objectContaining({ role: 'assistant', content: null }),
      { role: 'tool', tool_call_id: 'c1', content: '6', cache_control: short },
    ])
    const long = (await sent(config, { key: 'int_1', long: true })).body.messages
    expect(long[3]).toMatchObject({ cache_control: { type: 'ephemeral', ttl: '1h' } })
    const others = [
      { ...config, cache: 'off' },
      { ...config, model: 'google/gemini-3.8-flash' },
    ] as const
    for (const other of others) expect(JSON.stringify((await sent(other)).body)).not.toContain('cache_control')
  })

  test.each([
    ['deepseek', { prompt_cache_hit_tokens: 7 }],
    ['mistral', { num_cached_tokens: 7 }],
    ['groq', { prompt_tokens_details: { cached_tokens: 7 } }],
  ] as const)('%s reports input from its cache as %j', async (provider, fields) => {
    await using server = await open()
    const chunk = { choices: [{ delta: { content: 'ok' }, finish_reason: 'stop' }] }
    const usage = { prompt_tokens: 9, completion_tokens: 1, ...fields }
    server.script({ raw: `data: ${JSON.stringify({ ...chunk, usage })}\n\ndata: [DONE]\n\n` })
    const { outcome } = await call(await modelOf(server, { provider }), ask('Hi'))
    expect(outcome.tokens).toMatchObject({ input: 9, cachedInput: 7, output: 1 })
  })
})

describe("OpenRouter's reasoning details", () => {
  const details = [
    { type: 'reasoning.text', text: 'I roll.', signature: 'SIGNED', format: 'anthropic-claude-v1', index: 0 },
    { type: 'reasoning.encrypted', data: 'SEALED', id: 'call_1', index: 1 },
  ]
  const pieces = [
    { reasoning: 'I ', reasoning_details: [{ ...details[0], text: 'I ', signature: null }] },
    {
      reasoning: 'roll.',
      reasoning_details: [{ type: 'reasoning.text', text: 'roll.', signature: 'SIGNED', index: 0 }],
    },
    { reasoning_details: [details[1]] },
    { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'roll_dice', arguments: '{}' } }] },
  ]
  const raw = pieces.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`).join('')

  async function secondRequest(first: string, second: string) {
    await using server = await open()
    server.script({ raw: `${raw}data: [DONE]\n\n` }, { text: 'ok' })
    const openRouter = (model: string) => modelOf(server, { provider: 'openrouter', model })
    const { outcome, reasoning } = await call(await openRouter(first), ask('Roll', { tools: [DICE_TOOL] }))
    expect(reasoning).toBe('I roll.')
    const result = { role: 'tool', callId: 'call_1', name: 'roll_dice', output: '6' } as const
    // The store keeps messages as JSON.
    const messages = JSON.parse(JSON.stringify([userText('Roll'), messageOf(outcome), result])) as Message[]
    await call(await openRouter(second), ask('', { messages }))
    return server.requests[1]!.body
  }

  test('are joined and sent back to the model that wrote them', async () => {
    const { messages } = await secondRequest('anthropic/claude-opus-5.5', 'anthropic/claude-opus-5.5')
    expect(messages[1]).toMatchObject({ role: 'assistant', reasoning_details: details })
  })

  test('are not sent to another model', async () => {
    const { messages } = await secondRequest('anthropic/claude-opus-5.5', 'google/gemini-3.8-flash')
    expect(messages[1]).not.toHaveProperty('reasoning_details')
  })
})

test.each([
  ['xai', 'max_completion_tokens'],
  ['groq', 'max_completion_tokens'],
  ['mistral', 'max_tokens'],
  ['deepseek', 'max_tokens'],
  ['openrouter', 'max_tokens'],
] as const)('%s gets the limit on output tokens as %s', async (provider, field) => {
  await using server = await open()
  server.script({ text: 'ok' })
  await call(await modelOf(server, { provider }), ask('Hi'))
  const { max_tokens, max_completion_tokens } = server.requests[0]!.body
  expect({ max_tokens, max_completion_tokens }).toEqual({
    max_tokens: undefined,
    max_completion_tokens: undefined,
    [field]: 1000,
  })
})
