/** The providers' own web search: the request, the reported step, and what is sent back to the provider. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import { createAiSdkModel } from '../../src/models/ai-sdk.ts'
import {
  CLAUDE_SEARCH,
  claudeSays,
  claudeSearches,
  geminiSearches,
  OPENAI_ACTION,
  openaiSearches,
} from '../support/provider-search.ts'
import {
  AI_SDK_PROVIDERS,
  type AiSdkName,
  ask,
  call,
  DICE_TOOL,
  messageOf,
  openDispatcher,
  recordedTiming,
} from './calling.ts'

const dispatcher = openDispatcher()
// biome-ignore lint/suspicious/noExplicitAny: three providers' wire formats, read by path
const received: any[] = []
const answers: string[] = []
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  received.push(JSON.parse(Buffer.concat(chunks).toString()))
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answers.shift())
})
let url = ''
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
})
beforeEach(() => {
  received.length = answers.length = 0
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await dispatcher.destroy()
})

function modelOf(name: AiSdkName, model: string) {
  const provider = AI_SDK_PROVIDERS[name]
  return createAiSdkModel({
    name: 'm',
    provider,
    model,
    apiKey: 'key',
    env: {},
    dispatcher,
    timing: recordedTiming(),
    baseUrl: url,
  })
}

const MODELS = { anthropic: 'claude-opus-5-5', openai: 'gpt-6-sol', google: 'gemini-3.8-flash' } as const

/** The model's answer with its deltas, and the first two requests of the conversation. */
async function searched(provider: keyof typeof MODELS, answer: string, again: string) {
  answers.push(answer, again)
  const model = modelOf(provider, MODELS[provider])
  const request = ask('What of otters?', { tools: [DICE_TOOL], search: true })
  const { outcome, deltas } = await call(model, request)
  const spoken = messageOf(outcome)
  // The store keeps messages as JSON.
  const messages = JSON.parse(JSON.stringify([...request.messages, spoken])) as Message[]
  await call(model, {
    ...request,
    messages: [...messages, { role: 'user', content: [{ type: 'text', text: 'Go on' }] }],
  })
  return { deltas, spoken, first: received[0], second: received[1] }
}

test("reports Anthropic's search and sends it back", async () => {
  const answer = claudeSearches('I look.', 'otters', 'They play.')
  const { deltas, first, second } = await searched('anthropic', answer, claudeSays('Yes.'))
  expect(first.tools).toMatchObject([
    { name: 'roll_dice' },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
  ])
  expect(deltas).toEqual([
    { type: 'text', text: 'I look.' },
    {
      type: 'provider_tool',
      name: 'web_search',
      args: { query: 'otters' },
      output:
        "[2 results, found by the model's provider]\n\n1. Otters\n   https://otters.example/ (April 30, 2026)\n\n2. B\n   https://b.example/",
      durationMs: expect.any(Number),
    },
    { type: 'text', text: 'They play.' },
  ])
  const [, use, result] = CLAUDE_SEARCH
  expect(second.messages[1].content).toMatchObject([
    { type: 'text', text: 'I look.' },
    { ...use, input: { query: 'otters' } },
    result,
    { type: 'text', text: 'They play.' },
  ])
})

test("reports OpenAI's search and sends it back", async () => {
  const { deltas, first, second } = await searched('openai', openaiSearches('They play.'), openaiSearches('Yes.'))
  expect(first.tools).toMatchObject([{ name: 'roll_dice' }, { type: 'web_search' }])
  expect(first.include).toContain('web_search_call.action.sources')
  expect(deltas[0]).toEqual({
    type: 'provider_tool',
    name: 'web_search',
    args: { query: 'otters', queries: ['otters'] },
    output: "[2 results, found by the model's provider]\n\n1. https://otters.example/\n\n2. https://b.example/",
    durationMs: expect.any(Number),
  })
  expect(second.input).toMatchObject([
    { role: 'user' },
    { type: 'web_search_call', id: 'ws_1', action: OPENAI_ACTION },
    { role: 'assistant' },
    { role: 'user' },
  ])
})

test("reports Google's search, with other tools", async () => {
  const { deltas, first } = await searched('google', geminiSearches('They play'), geminiSearches('Yes'))
  expect(first.tools).toMatchObject([{ googleSearch: {} }, { functionDeclarations: [{ name: 'roll_dice' }] }])
  expect(deltas.at(-1)).toEqual({
    type: 'provider_tool',
    name: 'web_search',
    args: { queries: ['otters', 'sea otters'] },
    output:
      "[1 result, found by the model's provider]\n\n1. otters.example\n   https://vertexaisearch.cloud.google.com/grounding-api-redirect/1",
    durationMs: 0,
    late: true,
  })
})

test('does not offer the search unless the request asks for it', async () => {
  answers.push(claudeSays('Hi.'))
  await call(modelOf('anthropic', MODELS.anthropic), ask('Hi', { tools: [DICE_TOOL] }))
  expect(JSON.stringify(received[0].tools)).not.toContain('web_search')
})

test('reports a failed search and sends it back unchanged', async () => {
  const failed = { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' }
  const answer = claudeSearches('', 'otters', 'Sorry.').replace(
    /"content":\[\{"type":"web_search_result".*?\}\]/,
    `"content":${JSON.stringify(failed)}`,
  )
  const { deltas, second } = await searched('anthropic', answer, claudeSays('Yes.'))
  expect(deltas[0]).toMatchObject({ type: 'provider_tool', output: 'The search failed (max_uses_exceeded).' })
  expect(second.messages[1].content[1]).toMatchObject({ type: 'web_search_tool_result', content: failed })
})

describe('a turn that Anthropic pauses', () => {
  test('is continued and reported as one turn', async () => {
    answers.push(claudeSearches('I look.', 'otters', '', 'pause_turn'), claudeSays('They play.'))
    const { outcome, deltas } = await call(modelOf('anthropic', MODELS.anthropic), ask('Otters?', { search: true }))
    expect(deltas.map(({ type }) => type)).toEqual(['text', 'provider_tool', 'text'])
    expect(messageOf(outcome).content.map(({ type }) => type)).toEqual([
      'text',
      'provider_tool',
      'provider_tool',
      'text',
    ])
    expect(outcome).toMatchObject({ finish: 'stop', tokens: { input: 20, output: 40 } })
    expect(received[1].messages.at(-1)).toMatchObject({ role: 'assistant', content: [{ type: 'text' }, {}, {}] })
  })

  test('is not continued forever', async () => {
    answers.push(...Array(30).fill(claudeSearches('', 'otters', '', 'pause_turn')))
    const { outcome } = await call(modelOf('anthropic', MODELS.anthropic), ask('Otters?', { search: true }))
    expect(outcome.ok).toBe(true)
    expect(received.length).toBeLessThan(12)
  })
})

test("does not send one provider's search results to another", async () => {
  answers.push(claudeSearches('', 'otters', 'They play.'), openaiSearches('Yes.'))
  const request = ask('Otters?', { search: true })
  const { outcome } = await call(modelOf('anthropic', MODELS.anthropic), request)
  const messages = [...request.messages, messageOf(outcome)]
  await call(modelOf('openai', MODELS.openai), { ...request, messages })
  expect(JSON.stringify(received[1])).not.toMatch(/SEALED|srvtoolu/)
  expect(JSON.stringify(received[1])).toContain('They play.')
})
