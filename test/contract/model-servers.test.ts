/** Checks runs on model servers with requirements of their own: DeepSeek, vLLM, Mistral, Groq, and Anthropic's prompt cache. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeAnthropic, openFakeAnthropic } from '../support/model-provider/messages.ts'
import { type Server, startServer } from '../support/server.ts'
import { ROOMY } from './invariants.ts'

const PATH = '/v1beta/interactions'
const WRITE = { name: 'file_write', args: { path: 'a.txt', content: 'hello' } }

let deepseek: FakeProvider
let vllm: FakeProvider
const STRICT = ['mistral', 'groq', 'deepseek'] as const
const strict = new Map<string, FakeProvider>()
let anthropic: FakeAnthropic
let server: Server
beforeAll(async () => {
  deepseek = await openFakeProvider({ wantsReasoning: true })
  vllm = await openFakeProvider({ formatHidesTools: true })
  anthropic = await openFakeAnthropic()
  for (const name of STRICT) strict.set(name, await openFakeProvider({ strict: name, pairsCalls: true }))
  const hosted = [...strict].map(([provider, { url }]) => [provider, { provider, model: 'm', baseUrl: url }])
  const models = {
    ...Object.fromEntries(hosted),
    claude: { ...anthropic.model, price: { input: 4, output: 20, cachedInput: 0.4, cacheWrite: 5 } },
    thinker: { ...deepseek.model, model: 'deepseek-v4-flash' },
    vllm: vllm.model,
  }
  const env = { ...anthropic.env, MISTRAL_API_KEY: 'k', GROQ_API_KEY: 'k', DEEPSEEK_API_KEY: 'k' }
  server = await startServer({ config: { models, limits: ROOMY }, env })
})
afterAll(async () => {
  await server?.stop()
  await deepseek?.close()
  await vllm?.close()
  await anthropic?.close()
  for (const provider of strict.values()) await provider.close()
})

it('bills cache reads and cache writes at their own prices', async () => {
  const usage = { input: 1_000_000, cachedInput: 600_000, cacheWrite: 300_000, output: 1000 }
  anthropic.when('[cached]', { text: 'Yes.', usage })
  const { body, text } = await server.post(PATH, { instruction: '[cached]', model: 'claude' })
  expect(body.usage, text).toMatchObject({ input_tokens: 1_000_000, cached_input_tokens: 600_000 })
  // 100,000 at 4, 600,000 at 0.4, 300,000 at 5, and 1,000 at 20 dollars per million.
  expect(body.usage.cost).toEqual({ amount: '2.16', currency: 'USD' })
})

it('completes and continues a run on a model that requires its reasoning back with each call', async () => {
  deepseek.when('[think]', { reasoning: 'I write.', toolCalls: [WRITE] }, { reasoning: 'Done.', text: 'Written.' })
  const first = await server.post(PATH, { instruction: '[think]', model: 'thinker', tools: ['file_write'] })
  expect(first.body, first.text).toMatchObject({ status: 'completed', output: 'Written.' })
  deepseek.when('[again]', { text: 'Yes.' })
  const previousInteractionId = first.body.interactionId
  const second = await server.post(PATH, { instruction: '[again]', model: 'thinker', previousInteractionId })
  expect(second.body, second.text).toMatchObject({ status: 'completed', output: 'Yes.' })
})

it('lets a model call tools even if its server disables tool calls with a response format', async () => {
  vllm.when('[format]', { toolCalls: [WRITE] }, { text: 'It is 4.' }, { text: '{"sum": 4}' })
  const responseFormat = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  const fields = { instruction: '[format]', model: 'vllm', tools: ['file_write'], responseFormat }
  const { body, text } = await server.post(PATH, fields)
  expect(body, text).toMatchObject({ status: 'completed', output: '{"sum": 4}', usage: { tool_calls: 1 } })
  expect(vllm.requests).toHaveLength(3)
  expect(JSON.stringify(vllm.requests[0]!.body.messages)).toContain('JSON Schema')
})

it.each(STRICT)('completes a run with tools and a response format on %s', async (model) => {
  const provider = strict.get(model)!
  provider.when('[format]', { reasoning: 'I write.', toolCalls: [WRITE] }, { text: '{"sum": 4}' })
  const responseFormat = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  const fields = { instruction: '[format]', model, tools: ['file_write'], responseFormat }
  const { body, text } = await server.post(PATH, fields)
  expect(body, text).toMatchObject({ status: 'completed', output: '{"sum": 4}', usage: { tool_calls: 1 } })
  expect(provider.requests.filter(({ refused }) => refused)).toEqual([])
})
