/** Tests of the metrics that runs leave in /metrics, over HTTP. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { readSamples, sumOf } from './exposition.ts'

const KEY = 'the-key-of-the-operator'
const PRICE = { input: 1_000_000, output: 1_000_000, cachedInput: 500_000 }

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', maxTries: 2 }
  const models = { 'svc-3.5-flash': { ...model, price: PRICE }, 'svc-3.1-pro': model }
  server = await startServer({ config: { models, metrics: { key: KEY }, sandbox: { pool: 1 }, workerSlots: 7 } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

async function scrape(): Promise<string> {
  return (await server.get('/metrics', { authorization: `Bearer ${KEY}` })).text
}

test('counts model calls, tokens, cost, tools, sandboxes, database writes and queueing of a run', async () => {
  const usage = { input: 100, output: 20, cachedInput: 40, reasoning: 8 }
  provider.when(
    '[tool]',
    {
      toolCalls: [
        { name: 'code_execution', args: { code: 'print(1)' } },
        { name: 'no_such_tool', args: {} },
      ],
      usage,
    },
    { text: 'One.', usage },
  )
  const { status } = await server.post('/v1beta/interactions', {
    instruction: 'a secret wish [tool]',
    tools: ['code_execution'],
    labels: { team: 'label-of-a-caller' },
  })
  expect(status).toBe(200)
  const text = await scrape()
  const model = { model: 'svc-3.5-flash' }
  expect(sumOf(text, 'errand_interactions_accepted_total')).toBe(1)
  expect(sumOf(text, 'errand_interactions_ended_total', { status: 'completed', code: 'none' })).toBe(1)
  expect(sumOf(text, 'errand_interaction_duration_seconds_count', { status: 'completed' })).toBe(1)
  for (const part of ['wait', 'provisioning', 'settling']) {
    expect(sumOf(text, `errand_interaction_${part}_seconds_count`), part).toBe(1)
  }
  expect(sumOf(text, 'errand_model_call_duration_seconds_count', { ...model, outcome: 'ok' })).toBe(2)
  expect(sumOf(text, 'errand_model_first_token_seconds_count', model)).toBeGreaterThanOrEqual(1)
  for (const [type, tokens] of [
    ['input', 200],
    ['cached_input', 80],
    ['output', 40],
    ['reasoning', 16],
  ] as const) {
    expect(sumOf(text, 'errand_model_tokens_total', { ...model, type }), type).toBe(tokens)
  }
  // 2 × (60 input at full price, 40 cached at half of it, 20 output).
  expect(sumOf(text, 'errand_model_cost_usd_total', model)).toBe(200)
  const tool = 'errand_tool_call_duration_seconds_count'
  expect(sumOf(text, tool, { tool: 'code_execution', outcome: 'answered' })).toBe(1)
  expect(sumOf(text, tool, { tool: 'other', outcome: 'refused' })).toBe(1)
  expect(sumOf(text, 'errand_sandbox_open_duration_seconds_count', { sandbox: 'main', outcome: 'created' })).toBe(1)
  expect(sumOf(text, 'errand_sandboxes', { state: 'open' })).toBe(0)
  expect(sumOf(text, 'errand_sandboxes', { state: 'warm' })).toBeLessThanOrEqual(1)
  expect(sumOf(text, 'errand_up', { part: 'database' })).toBe(1)
  expect(sumOf(text, 'errand_worker_slots')).toBe(7)
  expect(sumOf(text, 'errand_events_stored_total')).toBeGreaterThan(5)
  expect(sumOf(text, 'errand_database_write_duration_seconds_count', { outcome: 'done' })).toBeGreaterThan(5)
  expect(sumOf(text, 'errand_database_commit_writes_count')).toBeGreaterThan(5)
  const route = { method: 'POST', route: '/v1beta/interactions', status: '200' }
  expect(sumOf(text, 'errand_http_request_duration_seconds_count', route)).toBe(1)
  expect(sumOf(text, 'errand_build_info')).toBe(1)
})

test('counts failures by code, retries by model, and streams by how they ended', async () => {
  provider.when('[failing]', [{ fault: 'status:500' }])
  const body = { instruction: 'try [failing]', model: 'svc-3.1-pro' }
  const events = await (await server.stream('/v1beta/interactions:stream', body)).all()
  expect(events.at(-1)!.data).toMatchObject({ status: 'failed' })
  const text = await scrape()
  expect(sumOf(text, 'errand_interactions_ended_total', { status: 'failed', code: 'model_error' })).toBe(1)
  expect(sumOf(text, 'errand_model_retries_total', { model: 'svc-3.1-pro' })).toBe(1)
  expect(sumOf(text, 'errand_model_call_duration_seconds_count', { model: 'svc-3.1-pro', outcome: 'overloaded' })).toBe(
    1,
  )
  expect(sumOf(text, 'errand_model_first_token_seconds_count', { model: 'svc-3.1-pro' })).toBeUndefined()
  expect(sumOf(text, 'errand_streams')).toBe(0)
  expect(sumOf(text, 'errand_streams_closed_total', { cause: 'whole' })).toBe(1)
})

test('no label contains text of a caller, and unknown addresses share one series', async () => {
  for (const path of ['/v1beta/guess-1', '/guess-2', '/v1beta/interactions/int_guess3', '/v1beta/agents/guess-4']) {
    await server.get(path)
  }
  const text = await scrape()
  const labels = readSamples(text).flatMap((sample) => Object.values(sample.labels))
  expect(labels.length).toBeGreaterThan(100)
  for (const words of ['guess', 'secret', 'label-of-a-caller', 'no_such_tool', 'int_', 'prj_', 'key_', server.key]) {
    expect(
      labels.filter((label) => label.includes(words)),
      words,
    ).toEqual([])
  }
  expect(sumOf(text, 'errand_http_request_duration_seconds_count', { route: 'none' })).toBe(2)
})
