/** The AI SDK's providers through the port, each against a mock of its API on a socket. */
import { LLMock } from '@copilotkit/aimock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import { type AiSdkOptions, createAiSdkModel } from '../../src/models/ai-sdk.ts'
import type { Model } from '../../src/models/port.ts'
import {
  AI_SDK_PROVIDERS,
  type AiSdkName,
  ask,
  call,
  closedPort,
  DICE_TOOL,
  failureOf,
  KEY,
  messageOf,
  openDispatcher,
  recordedTiming,
} from './calling.ts'

const dispatcher = openDispatcher()
const mock = new LLMock({ port: 0 })

beforeAll(async () => {
  await mock.start()
})
afterEach(() => mock.reset())
afterAll(async () => {
  await mock.stop()
  await dispatcher.destroy()
})

const PROVIDERS: Record<AiSdkName, { model: string; path: string }> = {
  anthropic: { model: 'claude-opus-5-5', path: '/v1' },
  google: { model: 'gemini-3.8-flash', path: '/v1beta' },
  openai: { model: 'gpt-6-luna', path: '/v1' },
  bedrock: { model: 'us.anthropic.claude-opus-5-5', path: '' },
  azure: { model: 'gpt-6-luna', path: '/v1' },
}

function modelOf(
  name: AiSdkName,
  rest: Partial<AiSdkOptions> = {},
): { model: Model; timing: ReturnType<typeof recordedTiming> } {
  const timing = recordedTiming()
  const { model, path } = PROVIDERS[name]
  const provider = AI_SDK_PROVIDERS[name]
  const baseUrl = `${mock.url}${path}`
  const options = {
    name: 'm',
    provider,
    model,
    apiKey: KEY,
    apiKeyEnv: 'THE_KEY',
    env: {},
    baseUrl,
    dispatcher,
    timing,
    ...rest,
  }
  return { model: createAiSdkModel(options), timing }
}

describe.each(Object.keys(PROVIDERS) as AiSdkName[])('%s', (provider) => {
  test('streams fragments and reports its usage', async () => {
    const usage = {
      input_tokens: 21,
      output_tokens: 9,
      promptTokenCount: 21,
      candidatesTokenCount: 9,
      totalTokenCount: 30,
    }
    mock.onMessage('Hi', { content: 'Hello from the other side of the wire.', usage })
    const { outcome, deltas, text } = await call(modelOf(provider).model, ask('Hi', { system: 'Be brief.' }))
    expect(outcome).toMatchObject({ ok: true, finish: 'stop' })
    expect(text).toBe('Hello from the other side of the wire.')
    expect(messageOf(outcome).content.at(-1)).toMatchObject({ type: 'text', text })
    expect(deltas.length).toBeGreaterThan(1)
    expect(outcome.tokens).toEqual({ input: 21, output: 9, cachedInput: 0, reasoning: 0 })
  })

  test('calls tools and continues with their results', async () => {
    mock.onMessage(/Roll/, (request) =>
      request.messages.some(({ role }) => role === 'tool')
        ? {
            content: `The tool said ${JSON.stringify(request.messages.filter(({ role }) => role === 'tool').map(({ content }) => content))}`,
          }
        : {
            toolCalls: [
              { name: 'roll_dice', arguments: '{"sides":6}' },
              { name: 'roll_dice', arguments: '{"sides":20}' },
            ],
          },
    )
    const { model } = modelOf(provider)
    const first = await call(model, ask('Roll two', { tools: [DICE_TOOL] }))
    expect(first.outcome).toMatchObject({ ok: true, finish: 'tool_calls' })
    const spoken = messageOf(first.outcome)
    const calls = spoken.content.filter((part) => part.type === 'tool_call')
    expect(calls).toMatchObject([
      { name: 'roll_dice', args: { sides: 6 } },
      { name: 'roll_dice', args: { sides: 20 } },
    ])
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(2)
    const messages: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'Roll two' }] },
      spoken,
      ...calls.map(({ callId, name }, i): Message => ({ role: 'tool', callId, name, output: `rolled ${i + 3}` })),
    ]
    const second = await call(model, ask('', { messages, tools: [DICE_TOOL] }))
    expect(second.outcome.ok).toBe(true)
    expect(second.text).toContain('rolled 3')
    expect(second.text).toContain('rolled 4')
  })

  test('is retried when overloaded, and fails as overloaded after all retries', async () => {
    mock.nextRequestError(503, { message: 'Come back later.' })
    mock.onMessage('Hi', { content: 'Hello.' })
    const { model, timing } = modelOf(provider)
    expect(await call(model, ask('Hi'))).toMatchObject({ text: 'Hello.', outcome: { ok: true } })
    expect(timing.waits).toEqual([250])
    mock.clearFixtures()
    mock.onMessage('Hi', { error: { message: 'Slow down.' }, status: 429, retryAfter: 7 })
    const failure = failureOf((await call(model, ask('Hi'))).outcome)
    expect(failure).toMatchObject({ kind: 'overloaded', retryable: true })
    expect(failure.message).toContain('Slow down.')
    expect(timing.waits).toEqual([250, 7250, 7500])
  })

  test.each([401, 403])('names the variable of a key refused with %i, never the key', async (status) => {
    mock.onMessage('Hi', { error: { message: `Bad key ${KEY}` }, status })
    const { model, timing } = modelOf(provider)
    const failure = failureOf((await call(model, ask('Hi'))).outcome)
    expect(failure).toMatchObject({ kind: 'refused', retryable: false })
    expect(failure.message).toContain('THE_KEY')
    expect(failure.message).not.toContain(KEY)
    expect(timing.waits).toEqual([])
  })

  test('is unreachable without a server, and does not show its address', async () => {
    const { model, timing } = modelOf(provider, { baseUrl: `http://127.0.0.1:${await closedPort()}` })
    const failure = failureOf((await call(model, ask('Hi'))).outcome)
    expect(failure).toMatchObject({ kind: 'unreachable', retryable: true })
    expect(failure.message).not.toContain('127.0.0.1')
    expect(timing.waits).toHaveLength(2)
  })
})
