/** Tests of the scripted Anthropic provider: over HTTP, it follows the rules of the real one. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startServer } from '../server.ts'
import { type FakeAnthropic, type MessagesOptions, type MessagesRequest, openFakeAnthropic } from './messages.ts'

let provider: FakeAnthropic
let clock = 0

async function open(options: MessagesOptions = {}): Promise<void> {
  await provider?.close()
  provider = await openFakeAnthropic({ now: () => clock, minCacheTokens: 10, ...options })
}
beforeEach(() => open())
afterEach(() => provider.close())

const TOOL = { name: 'roll', description: 'Rolls dice.', input_schema: { type: 'object' } }
const BASE: MessagesRequest = {
  model: 'claude-opus-5-5',
  max_tokens: 1000,
  system: 'You play.',
  tools: [TOOL],
  messages: [{ role: 'user', content: 'Roll [dice]' }],
}

// biome-ignore lint/suspicious/noExplicitAny: content blocks, read by path
type Blocks = any[]
interface Said {
  readonly status: number
  readonly text: string
  readonly content: Blocks
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly usage: any
  readonly stop: string | undefined
  readonly events: readonly string[]
}

/**
 * Sends one request and joins its stream into content blocks, as a client does. A broken stream returns what arrived.
 */
async function say(body: Partial<MessagesRequest>, headers: Record<string, string> = {}): Promise<Said> {
  const response = await fetch(`${provider.url}/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...BASE, ...body, stream: true }),
  })
  let text = ''
  try {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk
  } catch {}
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!))
  const content: Blocks = []
  let usage = {}
  let stop: string | undefined
  for (const event of events) {
    if (event.type === 'message_start') usage = event.message.usage
    if (event.type === 'content_block_start') content[event.index] = { ...event.content_block, args: '' }
    if (event.type === 'content_block_delta') {
      const { type: _, partial_json = '', ...delta } = event.delta
      const block = content[event.index]
      for (const [field, value] of Object.entries(delta))
        block[field] = field === 'signature' ? value : block[field] + value
      block.args += partial_json
    }
    if (event.type === 'message_delta') {
      usage = { ...usage, ...event.usage }
      stop = event.delta.stop_reason
    }
  }
  return {
    status: response.status,
    text,
    content: content.map(toBlock),
    usage,
    stop,
    events: events.map(({ type }) => type),
  }
}

function toBlock({ args, ...block }: Blocks[number]): object {
  return block.type === 'tool_use' && isJson(args)
    ? { ...block, input: JSON.parse(args) }
    : { ...block, ...(args && { args }) }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const result = (id: string, content: unknown = 'six') => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: id, content }] as Blocks,
})

/** The conversation after a turn with thinking and a tool call. */
async function afterCall(): Promise<MessagesRequest['messages']> {
  provider.when(
    '[dice]',
    { reasoning: ['I ', 'roll.'], text: 'Rolling.', toolCalls: [{ name: 'roll', args: { sides: 6 } }] },
    [{ reasoning: 'Six.', text: 'It is six.' }],
    { text: 'Bye.' },
  )
  const { content } = await say({})
  return [...BASE.messages, { role: 'assistant', content }, result(content.at(-1).id)]
}

test('streams thinking, text and a call like the API, and accepts them in the next request', async () => {
  const messages = await afterCall()
  expect(messages[1]!.content).toMatchObject([
    { type: 'thinking', thinking: 'I roll.', signature: expect.stringMatching(/./) },
    { type: 'text', text: 'Rolling.' },
    { type: 'tool_use', id: 'toolu_0_0', name: 'roll', input: { sides: 6 } },
  ])
  const second = await say({ messages })
  expect(second).toMatchObject({
    status: 200,
    stop: 'end_turn',
    content: [{ thinking: 'Six.' }, { text: 'It is six.' }],
  })
  const third = [...messages, { role: 'assistant', content: second.content }, { role: 'user', content: 'Bye' }]
  expect(await say({ messages: third })).toMatchObject({ content: [{ text: 'Bye.' }] })
})

describe('a thinking block is bound to everything before it', () => {
  test.each([
    ['system prompt', { system: 'You cheat.' }, 'The `system` prompt differs'],
    ['tools', { tools: [TOOL, { ...TOOL, name: 'cheat' }] }, 'The `tools` differ'],
  ])('a request with another %s is refused', async (_, edit, why) => {
    const messages = await afterCall()
    const refused = await say({ messages, ...edit })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('messages.1.content.0: Invalid `signature` in `thinking` block')
    expect(refused.text).toContain(why)
    expect(provider.requests.at(-1)!.refused).toContain(why)
  })

  test('refuses an edited message before the block, and accepts edits after it and cache markers', async () => {
    const messages = await afterCall()
    const [first, assistant] = messages
    const edited = [{ ...first!, content: 'Roll it [dice]' }, ...messages.slice(1)]
    expect((await say({ messages: edited })).text).toContain('An earlier message differs')
    expect((await say({ messages: [first!, assistant!, result('toolu_0_0', 'seven')] })).status).toBe(200)
    const marked = { type: 'text', text: 'Roll [dice]', cache_control: { type: 'ephemeral' } }
    expect((await say({ messages: [{ role: 'user', content: [marked] }, ...messages.slice(1)] })).status).toBe(200)
  })

  test('edited thinking is refused, and leaving out the first block is accepted', async () => {
    const messages = await afterCall()
    const [thinking, ...rest] = messages[1]!.content as Blocks
    const withFirst = (content: Blocks) => [messages[0]!, { role: 'assistant', content }, messages[2]!]
    const changed = await say({ messages: withFirst([{ ...thinking, thinking: 'No.' }, ...rest]) })
    expect(changed.text).toContain('cannot be modified')
    expect((await say({ messages: withFirst(rest) })).status).toBe(200)
    const second = await say({ messages })
    const end = [
      { role: 'assistant', content: second.content },
      { role: 'user', content: 'Bye' },
    ]
    expect((await say({ messages: [...withFirst(rest), ...end] })).status).toBe(200)
  })

  test('a request may ask to drop blocks that no longer match', async () => {
    const messages = await afterCall()
    const thinking = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' as const } }
    const edited = { messages, system: 'You cheat.', thinking }
    expect((await say(edited)).status).toBe(400)
    const beta = { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' }
    const dropped = await say(edited, beta)
    expect(dropped.status).toBe(200)
    expect(provider.requests.at(-1)!.dropped).toEqual(['messages.1.content.0'])
    const next = [...messages, { role: 'assistant', content: dropped.content }, { role: 'user', content: 'Bye' }]
    expect((await say({ ...edited, messages: next }, beta)).status).toBe(200)
    expect(provider.requests.at(-1)!.dropped).toEqual(['messages.1.content.0'])
  })
})

test('refuses a call that is not directly followed by its result, and a result without a call', async () => {
  const messages = await afterCall()
  const late = [...messages.slice(0, 2), { role: 'user', content: 'Well?' }, messages[2]!]
  expect((await say({ messages: late })).text).toContain('messages.1: `tool_use` ids were found without `tool_result`')
  const orphan = [messages[0]!, result('toolu_9')]
  expect((await say({ messages: orphan })).text).toContain('unexpected `tool_use_id` found in `tool_result` blocks')
})

test('refuses too many images, also in tool results', async () => {
  await open({ maxImages: 2 })
  const messages = await afterCall()
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const showing = (count: number) => [...messages.slice(0, 2), result('toolu_0_0', Array(count).fill(image))]
  expect((await say({ messages: showing(2) })).status).toBe(200)
  expect((await say({ messages: showing(3) })).text).toContain('Too much media: 0 document pages + 3 images > 2')
})

test('refuses empty text and a fifth cache marker', async () => {
  expect((await say({ messages: [{ role: 'user', content: '' }] })).text).toContain('must be non-empty')
  const marked = { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } } as const
  const five = [{ role: 'user', content: [marked, marked, marked, marked, marked] }]
  expect((await say({ messages: five })).text).toContain('A maximum of 4 blocks with cache_control')
})

describe('prompt caching', () => {
  const text = (of: string, marked = false) => ({
    type: 'text',
    text: of.repeat(100),
    ...(marked && { cache_control: { type: 'ephemeral' } }),
  })
  const ask = (...content: Blocks) => say({ messages: [{ role: 'user', content }] })

  beforeEach(() => provider.when(/./, () => ({ text: 'Yes.' })))

  test('reads the longest stored prefix and writes up to the last marker, until the lifetime ends', async () => {
    const first = (await ask(text('a', true), text('b'))).usage
    expect(first).toMatchObject({ cache_read_input_tokens: 0 })
    expect(first.cache_creation_input_tokens).toBeGreaterThan(25)
    const second = (await ask(text('a'), text('b', true), text('c'))).usage
    expect(second).toMatchObject({ cache_read_input_tokens: first.cache_creation_input_tokens })
    expect(second.cache_creation_input_tokens).toBeGreaterThan(25)
    expect((await ask(text('x'), text('b', true))).usage.cache_read_input_tokens).toBeLessThan(30)
    clock += 6 * 60_000
    expect((await ask(text('a'), text('b', true))).usage.cache_read_input_tokens).toBe(0)
  })

  test('looks back at most 20 blocks from a marker', async () => {
    const { usage } = await ask(text('a', true))
    const read = async (between: number) =>
      (await ask(text('a'), ...Array.from({ length: between }, () => text('b')), text('c', true))).usage
        .cache_read_input_tokens
    expect(await read(18)).toBe(usage.cache_creation_input_tokens)
    expect(await read(19)).toBe(0)
  })
})

test('refuses a prompt beyond the context window, and a limit that does not fit in the rest of it', async () => {
  await open({ window: 200 })
  const long = [{ role: 'user', content: 'x'.repeat(4000) }]
  expect((await say({ messages: long, max_tokens: 1 })).text).toMatch(/prompt is too long: \d+ tokens > 200 maximum/)
  expect((await say({ max_tokens: 190 })).text).toContain('exceed context limit')
})

test('ends an answer at max_tokens, unless the provider ignores the limit', async () => {
  provider.script({ text: 'x'.repeat(100) })
  const { content, stop, usage } = await say({ max_tokens: 10 })
  expect([content[0].text.length, stop, usage.output_tokens]).toEqual([40, 'max_tokens', 10])
  await open({ ignoresLimit: true })
  provider.script({ text: 'x'.repeat(100) })
  expect((await say({ max_tokens: 10 })).content[0].text).toHaveLength(100)
})

describe('a broken answer', () => {
  const reply = { reasoning: 'Hm.', text: ['One ', 'two ', 'three'], toolCalls: [{ name: 'roll', args: { sides: 6 } }] }

  test.each([
    ['truncate-after:3', 'One two '],
    ['reset-after:3', 'One two '],
    ['error-event-after:2', 'One '],
  ] as const)('keeps the fragments before the fault: %s', async (fault, text) => {
    provider.script({ ...reply, fault })
    const said = await say({})
    expect(said.content[1]).toMatchObject({ text })
    expect(said.stop).toBe(undefined)
    if (fault.startsWith('error')) expect(said.text).toContain('"type":"overloaded_error"')
  })

  test('has unfinished arguments if the limit is reached within a call', async () => {
    provider.script({ ...reply, argPieces: 2, fault: 'length-after:5' })
    const { content, stop, events } = await say({})
    expect(content.at(-1)).toMatchObject({ type: 'tool_use', input: {}, args: '{"side' })
    expect(stop).toBe('max_tokens')
    expect(events.at(-1)).toBe('message_stop')
  })

  test('has the API’s error body if the fault is an HTTP status', async () => {
    provider.script({ fault: 'status:529', errorMessage: 'Overloaded' })
    const { status, text } = await say({})
    expect(status).toBe(529)
    expect(JSON.parse(text)).toMatchObject({
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
    })
  })

  test('has a stop reason if the model refuses', async () => {
    provider.script({ text: 'I', finish: 'content_filter' })
    expect((await say({})).stop).toBe('refusal')
  })
})

describe('a final message by the assistant', () => {
  const prefilled = [...BASE.messages, { role: 'assistant', content: 'It is' }]

  test('is continued within its turn', async () => {
    provider.when('[dice]', { text: ['It ', 'is a ', 'six.'] })
    expect((await say({ messages: prefilled })).content).toMatchObject([{ text: ' a six.' }])
  })

  test('is refused by models without prefill support, and if it ends with whitespace', async () => {
    const spaced = [...BASE.messages, { role: 'assistant', content: 'It is ' }]
    expect((await say({ messages: spaced })).text).toContain('cannot end with trailing whitespace')
    await open({ prefill: false })
    expect((await say({ messages: prefilled })).text).toContain('does not support assistant message prefill')
  })
})

test('serves a whole run of Errand: thinking, a tool, an answer', async () => {
  await open({ minCacheTokens: 1024 })
  provider.when(
    '[run]',
    { reasoning: 'I write.', toolCalls: [{ name: 'file_write', args: { path: 'a.txt', content: 'hello' } }] },
    { reasoning: 'Done.', text: ['All ', 'done.'] },
  )
  const server = await startServer({ provider })
  try {
    const { body } = await server.post('/v1beta/interactions', { instruction: '[run]', tools: ['file_write'] })
    expect(body).toMatchObject({ status: 'completed', output: 'All done.' })
    expect(provider.requests.map(({ refused }) => refused)).toEqual([undefined, undefined])
  } finally {
    await server.stop()
  }
})
