import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Message, toolCalls, userText } from '../../src/domain/message.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { ask, call, DICE_TOOL, failureOf, KEY, messageOf, modelAt, openDispatcher } from './calling.ts'

const dispatcher = openDispatcher()
let provider: FakeProvider

beforeAll(async () => {
  provider = await openFakeProvider()
})
afterEach(() => provider.reset())
afterAll(async () => {
  await provider.close()
  await dispatcher.destroy()
})

const model = () => modelAt(provider.url, dispatcher).model
const rolled = (callId: string, name: string) => ({ role: 'tool', callId, name, output: 'six' }) as const

/** A provider that refuses calls without reasoning. */
async function openStrict() {
  const strict = await openFakeProvider({ wantsReasoning: true, pairsCalls: true })
  return { ...strict, [Symbol.asyncDispose]: strict.close }
}

describe('an answer', () => {
  test('is streamed in fragments, with its usage', async () => {
    provider.script({
      text: ['Hel', 'lo ', 'you'],
      usage: { input: 100, output: 7, cachedInput: 60, reasoning: 3 },
    })
    const { outcome, deltas } = await call(model(), ask('Hi'))
    expect(deltas).toEqual([
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo ' },
      { type: 'text', text: 'you' },
    ])
    expect(outcome).toEqual({
      ok: true,
      message: { role: 'assistant', content: [{ type: 'text', text: 'Hello you' }] },
      finish: 'stop',
      tokens: { input: 100, output: 7, cachedInput: 60, reasoning: 3 },
    })
  })

  test.each([
    { prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 20 } },
    { prompt_cache_hit_tokens: 60, cache_creation_input_tokens: 20 },
  ])('reports cache reads and writes: %j', async (fields) => {
    const usage = { prompt_tokens: 100, completion_tokens: 7, ...fields }
    provider.script({
      raw: `data: ${JSON.stringify({ choices: [{ finish_reason: 'stop' }], usage })}\n\ndata: [DONE]\n\n`,
    })
    const { outcome } = await call(model(), ask('Hi'))
    expect(outcome.tokens).toEqual({ input: 100, output: 7, cachedInput: 60, cacheWrite: 20, reasoning: 0 })
  })

  test('has reasoning before it, and marks the start of a second block', async () => {
    const chunks = [
      { reasoning_content: 'First ' },
      { reasoning: 'thought.' },
      { content: 'Well, ' },
      { reasoning_details: [{ type: 'reasoning.text', text: 'Second.' }] },
      { content: 'done.' },
    ]
    const events = chunks.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`).join('')
    provider.script({ raw: `${events}data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n` })
    const { outcome, deltas } = await call(model(), ask('Think'))
    expect(deltas).toEqual([
      { type: 'reasoning', text: 'First ' },
      { type: 'reasoning', text: 'thought.' },
      { type: 'text', text: 'Well, ' },
      { type: 'reasoning_block' },
      { type: 'reasoning', text: 'Second.' },
      { type: 'text', text: 'done.' },
    ])
    expect(messageOf(outcome).content).toEqual([
      { type: 'reasoning', text: 'First thought.' },
      { type: 'text', text: 'Well, ' },
      { type: 'reasoning', text: 'Second.' },
      { type: 'text', text: 'done.' },
    ])
  })

  test('has reasoning once if a provider sends it under two names', async () => {
    const delta = { reasoning: 'Hm.', reasoning_details: [{ type: 'reasoning.text', text: 'Hm.' }] }
    provider.script({ raw: `data: ${JSON.stringify({ choices: [{ delta, finish_reason: 'stop' }] })}\n\n` })
    expect((await call(model(), ask('Think'))).reasoning).toBe('Hm.')
  })

  test('has parallel tool calls whose arguments are streamed in pieces', async () => {
    provider.script({
      text: 'Rolling.',
      toolCalls: [
        { name: 'roll_dice', args: { sides: 6 }, id: 'a' },
        { name: 'roll_dice', args: { sides: 20, note: 'ünïcode "quoted"' }, id: 'b' },
      ],
      argPieces: 5,
    })
    const { outcome } = await call(model(), ask('Roll', { tools: [DICE_TOOL] }))
    expect(outcome).toMatchObject({ finish: 'tool_calls' })
    expect(messageOf(outcome).content).toMatchObject([
      { type: 'text', text: 'Rolling.' },
      { type: 'tool_call', callId: 'a', name: 'roll_dice', args: { sides: 6 } },
      { type: 'tool_call', callId: 'b', name: 'roll_dice', args: { sides: 20, note: 'ünïcode "quoted"' } },
    ])
  })

  test.each([
    [
      'every call has index 0',
      [
        { index: 0, id: 'a' },
        { index: 0, id: 'b' },
      ],
    ],
    ['no call has an index', [{ id: 'a' }, { id: 'b' }]],
    ['no call has an index or an id', [{}, {}]],
  ])('distinguishes two whole tool calls if %s', async (_, heads) => {
    const tool_calls = heads.map((head, i) => ({
      ...head,
      function: { name: 'roll_dice', arguments: `{"sides":${i}}` },
    }))
    const events = tool_calls.map(
      (one) => `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [one] } }] })}\n\n`,
    )
    provider.script({ raw: `${events.join('')}data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n` })
    const { outcome } = await call(model(), ask('Roll'))
    expect(outcome).toMatchObject({ ok: true, finish: 'tool_calls' })
    const calls = messageOf(outcome).content as readonly { callId: string; args: unknown }[]
    expect(calls.map(({ args }) => args)).toEqual([{ sides: 0 }, { sides: 1 }])
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(2)
    expect(calls.every(({ callId }) => callId.length > 0)).toBe(true)
  })

  test.each([
    ['', {}],
    ['{}', {}],
    ['{"a": 1}', { a: 1 }],
    ['{"a": ', undefined],
    ['[1]', undefined],
    ['"text"', undefined],
    ['null', undefined],
  ])('reads the tool arguments %j as %j', async (args, expected) => {
    provider.script({ toolCalls: [{ name: 'roll_dice', args }] })
    const [part] = messageOf((await call(model(), ask('Roll'))).outcome).content
    expect(part).toMatchObject({ type: 'tool_call', argsText: args })
    expect((part as { args: unknown }).args).toEqual(expected)
  })

  test.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['eos_token', 'stop'],
  ])('with finish reason %s ends as %s', async (finish, expected) => {
    provider.script({ text: 'So', finish })
    expect((await call(model(), ask('Go'))).outcome).toMatchObject({ ok: true, finish: expected })
  })

  test.each([
    [
      'in the last chunk with content',
      { prompt_tokens: 3, completion_tokens: 2 },
      { input: 3, output: 2, cachedInput: 0, reasoning: 0 },
    ],
    [
      'with reasoning only in the total',
      { prompt_tokens: 3, completion_tokens: 2, total_tokens: 9, completion_tokens_details: { reasoning_tokens: 4 } },
      { input: 3, output: 6, cachedInput: 0, reasoning: 4 },
    ],
    ['as nothing at all', undefined, undefined],
    ['as nonsense', { prompt_tokens: 'many' }, undefined],
  ])('counts usage %s', async (_, usage, tokens) => {
    provider.script({
      raw: `data: ${JSON.stringify({ choices: [{ delta: { content: 'x' }, finish_reason: 'stop' }], usage })}\n\n`,
    })
    const { outcome } = await call(model(), ask('Go'))
    expect(outcome.ok).toBe(true)
    expect(outcome.tokens).toEqual(tokens)
  })

  test('may be one JSON object from a server that does not stream', async () => {
    provider.script({
      fault: 'json',
      reasoning: 'Hm.',
      text: 'Whole.',
      toolCalls: [{ name: 'roll_dice', args: { sides: 6 } }],
    })
    const { outcome, text, reasoning } = await call(model(), ask('Go'))
    expect({ text, reasoning }).toEqual({ text: 'Whole.', reasoning: 'Hm.' })
    expect(outcome).toMatchObject({ ok: true, finish: 'tool_calls', tokens: { input: 10, output: 5 } })
    expect(messageOf(outcome).content).toHaveLength(3)
  })

  test('may end without [DONE] after its finish reason', async () => {
    provider.script({ text: 'Fine.', fault: 'no-done' })
    expect((await call(model(), ask('Go'))).outcome).toMatchObject({ ok: true, finish: 'stop' })
  })

  test('is the same for any split into chunks', async () => {
    const text = '👩‍🚀 né 漢'
    const bytes = Buffer.byteLength(text)
    const reply = (offset: number) => ({
      text,
      cut: (body: Buffer) => {
        const at = body.indexOf(text) + offset
        return [body.subarray(0, at), body.subarray(at)]
      },
    })
    const offsets = Array.from({ length: bytes + 1 }, (_, offset) => offset)
    provider.when(/cut/, offsets.map(reply))
    const only = model()
    for (const offset of offsets) {
      const spoken = await call(only, ask('cut'))
      expect(spoken.text, `cut at byte ${offset} of the text`).toBe(text)
      expect(spoken.outcome.ok).toBe(true)
    }
    expect(provider.requests).toHaveLength(bytes + 1)
  })

  test('ends at [DONE] even if the server keeps the connection open', async () => {
    const kept = Promise.withResolvers<void>()
    provider.script({
      text: 'Done.',
      hold: kept.promise,
      holdAfter: 1,
      cut: (body) => [body, Buffer.from(': more\n\n')],
    })
    expect((await call(model(), ask('Go'))).outcome).toMatchObject({ ok: true })
    kept.resolve()
  })
})

describe('a request', () => {
  test('has model, key and limit, and asks for a stream with usage', async () => {
    provider.script({ text: 'ok' })
    await call(model(), ask('Hi', { system: 'Be brief.' }))
    const [{ headers, body }] = provider.requests as [FakeProvider['requests'][number]]
    expect(headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'content-type': 'application/json' })
    expect(body).toEqual({
      model: 'fake',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 1000,
    })
  })

  test('has tools and a whole conversation', async () => {
    const image = { type: 'image', mimeType: 'image/png', base64: 'iVBORw0KGgo=' } as const
    const report = { type: 'document', mimeType: 'application/pdf', base64: 'JVBERi0=', name: 'report.pdf' } as const
    const messages: Message[] = [
      {
        role: 'user',
        content: [{ type: 'text', text: 'Look' }, image],
      },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Secret thought.' },
          { type: 'tool_call', callId: 'a', name: 'roll_dice', argsText: '{"sides": 6}', args: { sides: 6 } },
          { type: 'tool_call', callId: 'b', name: 'roll_dice', argsText: '{"sides":', args: undefined },
        ],
      },
      { role: 'tool', callId: 'a', name: 'roll_dice', output: '4', media: [image, report] },
      { role: 'tool', callId: 'b', name: 'roll_dice', output: 'The arguments are no JSON object.' },
    ]
    provider.script({ text: '{}' })
    await call(model(), ask('', { messages, tools: [DICE_TOOL] }))
    const body = provider.requests[0]!.body
    const url = `data:image/png;base64,${image.base64}`
    expect(body.tools).toEqual([{ type: 'function', function: DICE_TOOL }])
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'roll_dice', arguments: '{"sides": 6}' } },
          { id: 'b', type: 'function', function: { name: 'roll_dice', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: '4' },
      { role: 'tool', tool_call_id: 'b', content: 'The arguments are no JSON object.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'From roll_dice:' },
          { type: 'image_url', image_url: { url } },
          { type: 'file', file: { filename: 'report.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
        ],
      },
    ])
    expect(JSON.stringify(body)).not.toContain('Secret thought')
  })

  test('has the response format as a field without tools, and in the prompt with tools', async () => {
    provider.script({ text: '{}' }, { text: '{}' })
    const schema = { type: 'object', properties: { a: { type: 'number' } } }
    await call(model(), ask('Hi', { system: 'Be kind.', responseFormat: schema }))
    await call(model(), ask('Hi', { system: 'Be kind.', responseFormat: schema, tools: [DICE_TOOL] }))
    const [plain, withTools] = provider.requests.map(({ body }) => body)
    expect(plain!.response_format).toEqual({ type: 'json_schema', json_schema: { name: 'answer', schema } })
    expect(plain!.messages[0]).toEqual({ role: 'system', content: 'Be kind.' })
    expect(withTools).not.toHaveProperty('response_format')
    expect(withTools!.messages[0]!.content).toMatch(/^Be kind\.\n\nYour final answer must be one JSON value/)
    expect(withTools!.messages[0]!.content).toContain(JSON.stringify(schema))
  })

  test('leaves out an assistant message without text and calls', async () => {
    provider.script({ text: 'ok' })
    const empty: Message = { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm.' }] }
    await call(model(), ask('', { messages: [userText('Hi'), empty, userText('Well?')] }))
    expect(provider.requests[0]!.body.messages.map(({ role }) => role)).toEqual(['user', 'user'])
  })

  test.each([
    ['deepseek-v4-pro', {}],
    ['moonshotai/kimi-k2.5', {}],
    ['some-model', { sendReasoning: true }],
  ])('sends the reasoning of %s back with its calls, empty if there was none', async (name, options) => {
    await using strict = await openStrict()
    const thinking = modelAt(strict.url, dispatcher, { model: name, ...options }).model
    strict.when(
      'Roll',
      { reasoning: ['I ', 'roll.'], toolCalls: [{ name: 'roll_dice', args: { sides: 6 } }] },
      { toolCalls: [{ name: 'roll_dice', args: { sides: 20 } }] },
      { reasoning: 'Done.', text: 'Six.' },
    )
    const messages: Message[] = [userText('Roll')]
    for (let turn = 0; turn < 2; turn++) {
      const message = messageOf((await call(thinking, ask('', { messages, tools: [DICE_TOOL] }))).outcome)
      messages.push(message, ...toolCalls(message).map(({ callId, name }) => rolled(callId, name)))
    }
    expect((await call(thinking, ask('', { messages, tools: [DICE_TOOL] }))).text).toBe('Six.')
    expect(strict.requests.at(-1)!.body).toEqual({
      model: name,
      messages: [
        { role: 'user', content: 'Roll' },
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'I roll.',
          tool_calls: [{ id: 'call_0_0', type: 'function', function: { name: 'roll_dice', arguments: '{"sides":6}' } }],
        },
        { role: 'tool', tool_call_id: 'call_0_0', content: 'six' },
        {
          role: 'assistant',
          content: null,
          reasoning_content: '',
          tool_calls: [
            { id: 'call_1_0', type: 'function', function: { name: 'roll_dice', arguments: '{"sides":20}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1_0', content: 'six' },
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 1000,
      tools: [{ type: 'function', function: DICE_TOOL }],
    })
  })

  test('keeps the path and query of the base URL, and sends its user and password if there is no key', async () => {
    provider.script({ text: 'ok' })
    const baseUrl = `http://me:p%40ss@127.0.0.1:${provider.port}/proxy/v1/?api-version=7`
    await call(modelAt(baseUrl, dispatcher, { apiKey: undefined }).model, ask('Hi'))
    expect(provider.requests[0]).toMatchObject({
      url: '/proxy/v1/chat/completions?api-version=7',
      headers: { authorization: `Basic ${Buffer.from('me:p@ss').toString('base64')}` },
    })
  })

  test('is resent with the other field name for the limit, which is then kept', async () => {
    const errorMessage = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    provider.script({ fault: 'status:400', errorMessage }, { text: 'one' }, { text: 'two' })
    const only = model()
    expect((await call(only, ask('Hi'))).text).toBe('one')
    expect((await call(only, ask('Hi'))).text).toBe('two')
    expect(provider.requests.map(({ body }) => [body.max_tokens, body.max_completion_tokens])).toEqual([
      [1000, undefined],
      [undefined, 1000],
      [undefined, 1000],
    ])
  })

  test('is resent without a limit that is too high; a lower limit is still sent', async () => {
    const errorMessage = 'Invalid max_tokens value.'
    provider.script({ fault: 'status:400', errorMessage }, { text: 'one' }, { text: 'two' }, { text: 'three' })
    const only = model()
    await call(only, ask('Hi'))
    await call(only, ask('Hi'))
    expect((await call(only, ask('Hi', { maxOutputTokens: 50 }))).text).toBe('three')
    expect(provider.requests.map(({ body }) => body.max_tokens)).toEqual([1000, undefined, undefined, 50])
  })

  test('is resent with the maximum that the refusal names', async () => {
    const errorMessage = 'max_tokens is too large: 1000. This model supports at most 900 completion tokens.'
    provider.script({ fault: 'status:400', errorMessage }, { text: 'one' }, { text: 'two' })
    const only = model()
    await call(only, ask('Hi'))
    await call(only, ask('Hi'))
    expect(provider.requests.map(({ body }) => body.max_tokens)).toEqual([1000, 900, 900])
  })

  test('does not change later limits if it is refused both ways', async () => {
    const fault = 'status:400'
    provider.script(
      { fault, errorMessage: "Unsupported parameter: use 'max_completion_tokens' instead." },
      { fault, errorMessage: 'No such model.' },
      { text: 'two' },
    )
    const only = model()
    expect(failureOf((await call(only, ask('Hi'))).outcome).message).toContain('No such model')
    await call(only, ask('Hi'))
    expect(provider.requests.map(({ body }) => [body.max_tokens, body.max_completion_tokens])).toEqual([
      [1000, undefined],
      [undefined, 1000],
      [1000, undefined],
    ])
  })
})

describe('a context window', () => {
  test('with less room than the limit: only that call is resent, with the room as limit', async () => {
    const errorMessage =
      "This model's maximum context length is 8192 tokens. However, you requested 8500 tokens (7500 in the messages, 1000 in the completion)."
    provider.script({ fault: 'status:400', errorMessage }, { text: 'one' }, { text: 'two' })
    const only = model()
    expect((await call(only, ask('Hi'))).text).toBe('one')
    expect((await call(only, ask('Hi'))).text).toBe('two')
    expect(provider.requests.map(({ body }) => body.max_tokens)).toEqual([1000, 692, 1000])
  })

  test('whose refusal does not name the prompt length: only that call is resent, without a limit', async () => {
    const errorMessage = "This model's maximum context length is 900 tokens. However, you requested 1000."
    provider.script({ fault: 'status:400', errorMessage }, { text: 'one' }, { text: 'two' })
    const only = model()
    await call(only, ask('Hi'))
    await call(only, ask('Hi'))
    expect(provider.requests.map(({ body }) => body.max_tokens)).toEqual([1000, undefined, 1000])
  })

  test.each([
    ['prompt is too long: 208310 tokens > 200000 maximum', 208_310, 200_000],
    [
      'input length and `max_tokens` exceed context limit: 199990 + 20000 > 200000, decrease input length or `max_tokens` and try again',
      199_990,
      200_000,
    ],
    [
      "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
      112_946,
      16_384,
    ],
    [
      "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens.",
      262_145,
      262_144,
    ],
    [
      "This model's maximum context length is 2048 tokens. However, your request has 2100 input tokens plus 2045 'max_tokens'. Please reduce one or the other.",
      2100,
      2048,
    ],
    ['request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it', 5000, 4096],
    ['The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).', 1_200_000, 1_048_576],
    ["This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 140_000, 131_072],
    ["Input length (265330) exceeds model's maximum context length (262144).", 265_330, 262_144],
    [
      'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      40_000,
      32_768,
    ],
    [
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
      undefined,
      undefined,
    ],
    ['Input is too long for requested model.', undefined, undefined],
  ])('is recognized in a refusal: %s', async (errorMessage, prompt, window) => {
    provider.script({ fault: 'status:400', errorMessage })
    const failure = failureOf((await call(model(), ask('Hi'))).outcome)
    expect(failure).toMatchObject({ kind: 'refused', tooLong: { ...(prompt && { prompt, window }) } })
    expect(provider.requests).toHaveLength(1)
  })

  test('is not recognized in a refusal of a limit', async () => {
    const errorMessage =
      '`max_tokens` must be less than or equal to `800`, the maximum value for `max_tokens` is less than the `context_window` for this model'
    provider.script({ fault: 'status:400', errorMessage }, { text: 'one' })
    await call(model(), ask('Hi'))
    expect(provider.requests.map(({ body }) => body.max_tokens)).toEqual([1000, 800])
  })
})

describe('a call that is aborted', () => {
  test('closes its connection during the answer', async () => {
    const never = new Promise(() => {})
    provider.script({ text: ['one', 'two'], hold: never, holdAfter: 1 })
    const abort = new AbortController()
    const spoken = call(model(), ask('Go'), abort.signal)
    const request = await provider.received(1)
    abort.abort()
    const { outcome } = await spoken
    expect(failureOf(outcome)).toMatchObject({ kind: 'aborted', retryable: false })
    expect(await request.ended).toBe('closed')
  })

  test('closes its connection before the first byte', async () => {
    provider.script({ fault: 'stall' })
    const abort = new AbortController()
    const spoken = call(model(), ask('Go'), abort.signal)
    const request = await provider.received(1)
    abort.abort()
    expect(failureOf((await spoken).outcome).kind).toBe('aborted')
    expect(await request.ended).toBe('closed')
    expect(provider.requests).toHaveLength(1)
  })

  test('is not made if the signal is already aborted', async () => {
    const { outcome } = await call(model(), ask('Go'), AbortSignal.abort())
    expect(failureOf(outcome).kind).toBe('aborted')
    expect(provider.requests).toHaveLength(0)
  })

  test('stops waiting for its next retry', async () => {
    provider.script({ fault: 'status:429', headers: { 'retry-after': '3600' } })
    const abort = new AbortController()
    const waiting = Promise.withResolvers<void>()
    const { REAL_TIMING } = await import('../../src/models/retry.ts')
    const options = { timing: REAL_TIMING, onRetry: () => waiting.resolve() }
    const spoken = call(modelAt(provider.url, dispatcher, options).model, ask('Go'), abort.signal)
    await waiting.promise
    abort.abort()
    expect(failureOf((await spoken).outcome).kind).toBe('aborted')
  })
})
