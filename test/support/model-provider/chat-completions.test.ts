/** Tests of the scripted chat completions server: each option follows a rule of real servers. */
import { afterEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../../fake-provider.ts'
import type { ChatOptions } from './chat-completions.ts'

let provider: FakeProvider
afterEach(() => provider.close())

const user = { role: 'user', content: 'Hi' }
const call = { id: 'call_0_0', type: 'function', function: { name: 'roll', arguments: '{}' } }
const assistant = { role: 'assistant', content: null, tool_calls: [call] }
const result = { role: 'tool', tool_call_id: 'call_0_0', content: 'six' }

async function open(options: ChatOptions) {
  provider = await openFakeProvider(options)
  provider.when(/./, () => ({ text: 'x'.repeat(40), toolCalls: [{ name: 'roll', args: {} }] }))
}

async function say(body: object): Promise<string> {
  const response = await fetch(`${provider.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ messages: [user], ...body }),
  })
  return `${response.status} ${await response.text()}`
}

test('requires a result for each call, and a call for each result', async () => {
  await open({ pairsCalls: true })
  expect(await say({ messages: [user, assistant, result] })).toMatch(/^200/)
  expect(await say({ messages: [user, assistant, user] })).toMatch(/^400.*must be followed by tool messages/)
  expect(await say({ messages: [user, assistant] })).toMatch(/^400.*call_0_0/)
  expect(await say({ messages: [user, result] })).toMatch(/^400.*preceeding message/)
})

test('requires the reasoning of each message with tool calls', async () => {
  await open({ wantsReasoning: true })
  expect(await say({ messages: [user, assistant, result] })).toMatch(/^400.*reasoning_content/)
  const thought = { ...assistant, reasoning_content: 'Hm.' }
  expect(await say({ messages: [user, thought, result] })).toMatch(/^200/)
  expect(await say({ messages: [user, { ...assistant, reasoning_content: '' }, result, user] })).toMatch(/^200/)
})

test('calls no tools if a response format is set', async () => {
  await open({ formatHidesTools: true })
  expect(await say({})).toContain('tool_calls')
  expect(await say({ response_format: {} })).not.toContain('tool_calls')
})

test('counts tokens, cuts the answer at the limit, and caches prefixes', async () => {
  await open({ counts: true })
  const long = { role: 'user', content: 'x'.repeat(8000) }
  expect(await say({ messages: [long], max_tokens: 5 })).toMatch(/"finish_reason":"length".*"cached_tokens":0/s)
  const second = await say({ messages: [long, user], max_tokens: 500 })
  expect(Number(/"cached_tokens":(\d+)/.exec(second)![1])).toBeGreaterThan(2000)
  expect(second).toContain('"finish_reason":"tool_calls"')
})

test.each([
  ['openai', /maximum context length is 100 tokens/],
  ['vllm', /your request has \d+ input tokens/],
  ['llama.cpp', /exceeds the available context size/],
  ['openrouter', /endpoint's maximum context length/],
] as const)('refuses a prompt beyond the context window with the message of %s', async (windowError, words) => {
  await open({ window: 100, windowError })
  expect(await say({ max_tokens: 10 })).toMatch(/^200/)
  expect(await say({ messages: [{ role: 'user', content: 'x'.repeat(800) }] })).toMatch(words)
})
