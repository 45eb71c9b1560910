/**
 * Checks runs against providers that are as strict as real ones: they refuse reasoning from a changed request, a tool
 * call without a result, too many images, and a tool call that the output limit cut off. Also checks that runs that
 * reach a limit end with an answer.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider, type RecordedRequest, type Reply } from '../fake-provider.ts'
import { type FakeAnthropic, openFakeAnthropic } from '../support/model-provider/messages.ts'
import { type Server, startServer } from '../support/server.ts'
import { checkEnded, ROOMY } from './invariants.ts'

const PATH = '/v1beta/interactions'
/** A PNG image of one red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const DOT = { name: 'dot.png', content: PNG, encoding: 'base64' }
const PRINT = { name: 'code_execution', args: { code: 'print(42)' } }
const LOOK = { name: 'file_read', args: { path: DOT.name } }

let strict: FakeAnthropic
let plain: FakeProvider
let server: Server
beforeAll(async () => {
  strict = await openFakeAnthropic({ maxImages: 20 })
  plain = await openFakeProvider({ pairsCalls: true })
  const models = {
    strict: { ...strict.model, baseUrl: strict.url },
    plain: { ...plain.model, vision: true },
    priced: { ...plain.model, price: { input: 10, output: 10, cachedInput: 1 } },
  }
  server = await startServer({ config: { models, limits: ROOMY }, env: strict.env })
})
afterAll(async () => {
  await server?.stop()
  await strict?.close()
  await plain?.close()
})

async function run(instruction: string, fields: object = {}) {
  const answer = await server.post(PATH, { instruction, model: 'strict', ...fields })
  expect(answer.status, answer.text).toBe(200)
  await checkEnded(server, answer.body.interactionId)
  return answer.body
}

const refused = () => strict.requests.flatMap((request) => request.refused ?? [])
const messagesOf = ({ body }: { readonly body: object }) => JSON.stringify((body as { messages: unknown }).messages)

describe('continuing a conversation with other settings', () => {
  it.each<[string, object]>([
    ['one more tool', { tools: ['code_execution', 'file_write'] }],
    ['another system instruction', { systemInstruction: 'Be brief.' }],
    ['a network', { network: { allow: ['example.com'] } }],
    ['the same settings', {}],
  ])('%s is accepted by a provider that ties reasoning to its request', async (name, changed) => {
    const marker = `[first with ${name}]`
    strict.when(marker, { reasoning: 'I compute.', toolCalls: [PRINT] }, { reasoning: 'It is 42.', text: '42.' })
    strict.when(`[then ${name}]`, { reasoning: 'Once more.', toolCalls: [PRINT] }, { text: 'Still 42.' })
    const fields = { tools: ['code_execution'], systemInstruction: 'Be exact.' }
    const first = await run(marker, fields)
    const next = { ...fields, ...changed, previousInteractionId: first.interactionId }
    const before = strict.requests.length
    expect(await run(`[then ${name}]`, next)).toMatchObject({ status: 'completed', output: 'Still 42.' })
    expect(refused()).toEqual([])
    // Reasoning is omitted only if the provider would refuse it.
    expect(messagesOf(strict.requests[before]!).includes('I compute.')).toBe(name === 'the same settings')
  })

  it('accepts a third and a fourth interaction after an image was shown', async () => {
    const fields = { tools: ['file_read'], files: [DOT] }
    strict.when('[shows]', { reasoning: 'I look.', toolCalls: [LOOK] }, { reasoning: 'Red.', text: 'It is red.' })
    let { interactionId } = await run('[shows]', fields)
    for (const n of [2, 3, 4]) {
      strict.when(`[talk ${n}]`, { reasoning: `Thought ${n}.`, text: `Answer ${n}.` })
      const body = await run(`[talk ${n}]`, { tools: ['file_read'], previousInteractionId: interactionId })
      expect(body.output).toBe(`Answer ${n}.`)
      interactionId = body.interactionId
    }
    expect(refused()).toEqual([])
    expect(messagesOf(strict.requests.at(-1)!)).toContain(PNG)
  })

  it('accepts a canceled run whose tool call has no result', async () => {
    plain.when('[hangs]', { toolCalls: [{ name: 'code_execution', args: { code: 'while True: pass' } }] })
    const request = { instruction: '[hangs]', model: 'plain', tools: ['code_execution'], background: true }
    const { body } = await server.post(PATH, request)
    const stream = await server.stream(`${PATH}/${body.id}:stream`)
    for await (const { event } of stream.events) if (event === 'tool_call') break
    await server.post(`${PATH}/${body.id}:cancel`)
    plain.when('[after]', { text: 'Fine.' })
    const next = await run('[after]', { model: 'plain', previousInteractionId: body.id, tools: ['code_execution'] })
    expect(next.output).toBe('Fine.')
    expect(messagesOf(plain.requests.at(-1)!)).toContain('ended before this call had a result')
  })
})

describe('images', () => {
  it('shows 25 images in one run to a provider that accepts 20 per request', async () => {
    const reads = Array.from({ length: 25 }, (_, i) => ({ reasoning: `Look ${i}.`, toolCalls: [LOOK] }))
    strict.when('[many images]', ...reads, { text: 'Seen.' })
    const before = strict.requests.length
    expect(await run('[many images]', { tools: ['file_read'], files: [DOT] })).toMatchObject({ output: 'Seen.' })
    const requests = strict.requests.slice(before)
    expect(requests).toHaveLength(26)
    expect(refused()).toEqual([])
    for (const request of requests.slice(1)) {
      const { messages } = request.body as { messages: readonly object[] }
      expect(JSON.stringify(messages.at(-1))).toContain(PNG)
    }
  })

  it('does not blame accepted images for a later error in the middle of an answer', async () => {
    const half = 'The first half of the answer. '
    plain.when(
      '[red]',
      { toolCalls: [LOOK] },
      { text: [half.repeat(10), 'lost'], fault: 'error-event-after:1', errorCode: 'invalid_request_error' },
      { text: 'The end.' },
    )
    const body = await run('[red]', { model: 'plain', tools: ['file_read'], files: [DOT] })
    expect(body.output).toBe(`${half.repeat(10)}The end.`)
    expect(messagesOf(plain.requests.at(-1)!)).not.toContain('refused to show')
  })
})

describe('a tool call that the output limit cut off', () => {
  const CUT: Reply = { toolCalls: [PRINT], argPieces: 4, fault: 'length-after:2' }

  it('gets an error result, and the run continues with its remaining output budget', async () => {
    plain.when('[cut]', CUT, { toolCalls: [PRINT] }, { text: 'It is 42.' })
    const body = await run('[cut]', { model: 'plain', tools: ['code_execution'] })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'end_turn', output: 'It is 42.' })
    expect(body.executionTrace.map(({ output }: { output?: string }) => output).filter(Boolean)).toEqual([
      expect.stringContaining('cut off at the output limit'),
      '42',
    ])
  })

  it('does not leave an open call for the next interaction if it ended the run', async () => {
    plain.when('[cut at the end]', { ...CUT, usage: { input: 10, output: 1_000 } })
    const fields = { model: 'plain', tools: ['code_execution'] }
    const body = await run('[cut at the end]', { ...fields, policy: { maxOutputTokens: 1_000 } })
    expect(body.stopReason).toBe('max_output_tokens')
    plain.when('[goes on]', { text: 'Fine.' })
    const next = await run('[goes on]', { ...fields, previousInteractionId: body.interactionId })
    expect(next.output).toBe('Fine.')
  })
})

describe('a run that reaches a limit', () => {
  /** A model that calls tools until it is asked for its final answer. */
  const works = (usage: Reply['usage'], last: Reply = { text: 'What I have.' }) => {
    return (request: RecordedRequest): Reply =>
      messagesOf(request).includes('about to reach one of its limits') ? last : { toolCalls: [PRINT], usage }
  }
  const fields = { model: 'plain', tools: ['code_execution'] }

  it('ends with an answer at its output token limit', async () => {
    plain.when('[tokens]', works({ input: 10, output: 9_000 }))
    const body = await run('[tokens]', fields)
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_output_tokens', output: 'What I have.' })
    expect(body.usage.output_tokens).toBeLessThanOrEqual(65_536)
  })

  it('ends with an answer at its cost limit', async () => {
    plain.when('[cost]', works({ input: 1_000, output: 1_000 }))
    const policy = { maxCost: 0.2 }
    const body = await run('[cost]', { ...fields, model: 'priced', policy })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_cost', output: 'What I have.' })
    expect(Number(body.usage.cost.amount)).toBeLessThanOrEqual(policy.maxCost)
  })

  it('counts a cached prompt at the cached price toward its cost limit', async () => {
    // About 47,500 tokens a prompt: 48 cents uncached, 5 cents cached.
    const usage = { input: 47_500, cachedInput: 47_500, output: 100 }
    plain.when('[cached]', ...Array.from({ length: 6 }, () => ({ toolCalls: [PRINT], usage })), {
      text: 'Done.',
      usage,
    })
    const before = plain.requests.length
    const instruction = `[cached] ${'word '.repeat(160_000).slice(0, 190_000)}`
    const body = await run(instruction, { ...fields, model: 'priced', policy: { maxCost: 0.6 } })
    expect(body).toMatchObject({ stopReason: 'end_turn', output: 'Done.' })
    for (const { body } of plain.requests.slice(before)) expect(body.max_tokens).toBeGreaterThan(1_000)
  })

  it('declines further tool calls and asks the model for one last reply', async () => {
    const again: Reply = { text: 'One more look.', toolCalls: [PRINT] }
    plain.when('[stubborn]', works({ input: 10, output: 9_000 }, again))
    const body = await run('[stubborn]', fields)
    expect(body).toMatchObject({ stopReason: 'max_output_tokens', output: 'One more look.' })
    const results = body.executionTrace.filter(({ type }: { type: string }) => type === 'tool_result')
    expect(results.at(-1).output).toContain('has reached one of its limits')
  })

  it('stops a command that exceeds its own timeout, reports that to the model, and continues', async () => {
    const hang = { name: 'code_execution', args: { code: 'while True: pass', timeoutSeconds: 1 } }
    plain.when('[hung]', { toolCalls: [hang] }, { text: 'It hangs.' })
    const body = await run('[hung]', fields)
    expect(body.output).toBe('It hangs.')
    expect(body.executionTrace[1].output).toMatch(/stopped after 1\.0 s, its time limit.*timeoutSeconds, at most 3600/)
  })

  it('ends with an answer if a command hangs until the time limit', async () => {
    const hang = { name: 'code_execution', args: { code: 'import time; time.sleep(600)', timeoutSeconds: 600 } }
    plain.when('[late]', { toolCalls: [hang] }, { text: 'It hangs.' })
    const body = await run('[late]', { ...fields, policy: { maxTurnDuration: 60 } })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'max_turn_duration', output: 'It hangs.' })
    expect(body.executionTrace[1].output).toMatch(/the run's time is nearly over/)
  }, 120_000)
})
