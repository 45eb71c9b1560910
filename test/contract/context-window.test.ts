/**
 * Checks runs that outgrow their model's context window, on a provider that refuses longer prompts in the words of real
 * servers: they complete, keep facts, and lose nothing of the trace.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ChatRequest, type FakeProvider, openFakeProvider, type RecordedRequest } from '../fake-provider.ts'
import type { WindowError } from '../support/model-provider/context-window.ts'
import type { Reply } from '../support/model-provider/script.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { checkEnded, ROOMY, traceOf } from './invariants.ts'

const PATH = '/v1beta/interactions'
const WINDOW = 32_768
const DIALECTS = ['anthropic', 'openai', 'vllm', 'llama.cpp', 'openrouter'] as const satisfies readonly WindowError[]
const EARLY = { context: { compactAt: 0.3 } }
const SUMMARIZE = 'replaced by the summary'

const providers = new Map<string, FakeProvider>()
let server: Server

beforeAll(async () => {
  for (const windowError of DIALECTS)
    providers.set(windowError, await openFakeProvider({ counts: true, window: WINDOW, windowError, pairsCalls: true }))
  const models = Object.fromEntries([...providers].map(([name, { model }]) => [name, model]))
  const { model } = providers.get('openai')!
  const large = await openFakeProvider({ counts: true })
  providers.set('large', large)
  server = await startServer({
    config: {
      models: {
        ...models,
        configured: { ...model, contextWindow: WINDOW },
        'configured-vllm': { ...models.vllm, contextWindow: WINDOW },
        other: model,
        'falls-back': { ...model, fallbacks: ['large'] },
        large: large.model,
      },
      limits: ROOMY,
    },
  })
})
afterAll(async () => {
  await server?.stop()
  for (const provider of providers.values()) await provider.close()
})

const textOf = ({ messages }: ChatRequest) => JSON.stringify(messages)
const isSummary = ({ body }: RecordedRequest) => String(body.messages.at(-1)!.content).includes(SUMMARIZE)
const factsIn = (body: ChatRequest) => [...new Set(textOf(body).match(/FACT-\d+/g))].join(' ')

/** Prints 16,000 characters, 4,000 tokens. The third turn's first words are a fact. */
function printing(turn: number, call: number) {
  const fact = turn === 3 ? 'FACT-7319 ' : ''
  return { name: 'code_execution', args: { code: `print(('${fact}' + 'turn ${turn}.${call} ' * 2000)[:16000])` } }
}

/** Scripts turns with two calls each, which together have 8k tokens, then an answer. Summaries repeat the facts they get. */
function works(provider: FakeProvider, marker: string, turns: number): void {
  let turn = 0
  provider.when(marker, (request): Reply => {
    if (isSummary(request)) return { text: `Facts so far: ${factsIn(request.body)}. Go on.` }
    return ++turn > turns ? { text: 'Done.' } : { toolCalls: [printing(turn, 1), printing(turn, 2)] }
  })
}

const accepted = (provider: FakeProvider, marker: string) =>
  provider.requests.filter(({ body, refused }) => refused === undefined && textOf(body).includes(marker))

async function run(fields: object) {
  const answer = await server.post(PATH, { tools: ['code_execution'], ...fields })
  expect(answer.status, answer.text).toBe(200)
  return checkEnded(server, answer.body.interactionId)
}

describe.each(DIALECTS)('a window of 32k tokens, refused like %s', (dialect) => {
  it('completes many calls with large results, and keeps a fact of the third turn', { timeout: 300_000 }, async () => {
    const provider = providers.get(dialect)!
    const turns = 100
    works(provider, '[long]', turns)
    const { interaction, events } = await run({ instruction: 'Task [long]', model: dialect })
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.', warnings: [] })
    const requests = accepted(provider, '[long]')
    expect(factsIn(requests.at(-1)!.body)).toBe('FACT-7319')
    // Only the first prompt that was too long taught the window.
    const tooLong = provider.requests.filter(({ refused }) => refused && !/max_tokens|completion|output/.test(refused))
    expect(tooLong.length).toBeLessThanOrEqual(1)
    expect(events.map(({ event }) => event)).toContain('context_compacted')
    const results = traceOf(events).filter(({ type }) => type === 'tool_result')
    expect(results).toHaveLength(2 * turns)
    for (const { output } of results) expect(String(output)).toHaveLength(16_000)
    expect(interaction.usage.model_calls).toBe(requests.length)
    checkPrefixes(requests)
  })
})

/** Asserts that each request repeats the whole one before it, read from the cache, unless an edit came between. */
function checkPrefixes(requests: readonly RecordedRequest[]): void {
  let edits = 0
  for (const [i, { body, billed }] of requests.entries()) {
    const before = requests[i - 1]
    if (!before || isSummary(before)) continue
    const kept = JSON.stringify(body.messages.slice(0, before.body.messages.length))
    if (kept !== JSON.stringify(before.body.messages)) edits++
    else {
      const prompt = before.billed!.uncached + before.billed!.cacheRead
      // The provider caches no short prompts.
      if (prompt > 1_100) expect(billed!.cacheRead).toBeGreaterThanOrEqual(0.95 * prompt)
    }
  }
  // Three turns fill the window.
  expect(edits).toBeLessThan(0.6 * requests.length)
}

it('continues a conversation from its last summary', async () => {
  const provider = providers.get('openai')!
  works(provider, '[first]', 12)
  const first = await run({ instruction: 'Task [first]', model: 'configured', policy: EARLY })
  const compacted = first.events.findLast(({ event }) => event === 'context_compacted')!
  expect(compacted.data.tokensAfter).toBeLessThan(compacted.data.tokensBefore)
  provider.when('[second]', { text: 'Again done.' })
  const previousInteractionId = first.interaction.interactionId
  const { interaction } = await run({ instruction: '[second]', model: 'configured', previousInteractionId })
  expect(interaction).toMatchObject({ status: 'completed', output: 'Again done.', warnings: [] })
  const [before, next] = accepted(provider, '[first]').slice(-2)
  const { messages } = next!.body
  expect(messages.slice(0, -2)).toEqual(before!.body.messages)
  expect(String(messages[1]!.content)).toMatch(/Task \[first\].*replaced by this summary.*FACT-7319/s)
  expect(messages.slice(-2)).toMatchObject([
    { role: 'assistant', content: 'Done.' },
    { role: 'user', content: expect.stringContaining('[second]') },
  ])
})

it('shortens a conversation that outgrew the window before the first call of its next interaction', async () => {
  const provider = providers.get('vllm')!
  provider.when('[ask', (request): Reply => {
    const text = isSummary(request) ? `Facts: ${factsIn(request.body)}.` : `Answer. ${'word '.repeat(8_000)}`
    return { text }
  })
  let previousInteractionId: string | undefined
  for (const ask of ['[ask 1] FACT-1', '[ask 2]', '[ask 3]', '[ask 4]']) {
    const { interaction } = await run({ instruction: ask, model: 'configured-vllm', tools: [], previousInteractionId })
    expect(interaction).toMatchObject({ status: 'completed', warnings: [] })
    previousInteractionId = interaction.interactionId
  }
  const requests = accepted(provider, '[ask')
  expect(requests.some(isSummary)).toBe(true)
  expect(provider.requests.filter(({ body, refused }) => refused && textOf(body).includes('[ask'))).toEqual([])
  expect(factsIn(requests.at(-1)!.body)).toBe('FACT-1')
})

it('sends the same requests in other runs and to other models after a run has learned a window', async () => {
  const provider = providers.get('openai')!
  const ask = async (model: string, marker: string) => {
    provider.when(marker, { text: 'Hello.' })
    await run({ instruction: `Say hello. ${marker}`, model })
    return accepted(provider, marker).map(({ body }) => ({
      ...body,
      prompt_cache_key: '',
      messages: body.messages.length,
    }))
  }
  const before = await ask('other', '[hello 1]')
  works(provider, '[learns]', 6)
  const { events } = await run({ instruction: '[learns]', model: 'other' })
  expect(events.find(({ event }) => event === 'context_cleared')!.data).toMatchObject({
    model: 'other',
    window: WINDOW,
  })
  expect(await ask('other', '[hello 2]')).toEqual(before)
  expect(await ask('openai', '[hello 3]')).toEqual(before)
})

it('fails clearly if the instruction alone is larger than the window', async () => {
  const error = errorOf(await server.post(PATH, { instruction: 'word '.repeat(30_000), model: 'llama.cpp' }))
  expect(error).toMatchObject({ code: 'model_error', retryable: false })
  expect(error.message).toMatch(/^The request does not fit the context window of llama.cpp, 32,768 tokens/)
})

it('asks a fallback with a larger window', async () => {
  const large = providers.get('large')!
  large.when('[huge]', { text: 'It fits.' })
  const { interaction } = await run({ instruction: `[huge] ${'word '.repeat(30_000)}`, model: 'falls-back' })
  expect(interaction).toMatchObject({ status: 'completed', output: 'It fits.', warnings: [{ code: 'model_fallback' }] })
})

it('continues without the older messages, and says so, if they cannot be summarized', async () => {
  const provider = providers.get('openai')!
  let turn = 0
  provider.when('[dropped]', (request): Reply => {
    if (isSummary(request)) return { fault: 'status:400', errorMessage: 'No.' }
    const code = `print('ok')  # ${'long '.repeat(3_000)}`
    return ++turn > 12 ? { text: 'Done.' } : { toolCalls: [{ name: 'code_execution', args: { code } }] }
  })
  const { interaction, events } = await run({ instruction: '[dropped]', model: 'configured' })
  expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  const codes = interaction.warnings.map(({ code }: { code: string }) => code)
  expect(new Set(codes)).toEqual(new Set(['context_dropped']))
  expect(events.find(({ event }) => event === 'context_compacted')!.data).toMatchObject({ dropped: true })
  expect(String(accepted(provider, '[dropped]').at(-1)!.body.messages[1]!.content)).toContain('could not be summarized')
})

it('uses and shows policy.context, and refuses values outside its ranges', async () => {
  const provider = providers.get('openai')!
  works(provider, '[policy]', 8)
  const context = { compactAt: 0.3, keepTokens: 0, instructions: 'Keep colors.' }
  const { interaction, events } = await run({ instruction: '[policy]', model: 'configured', policy: { context } })
  expect(interaction.resolved.policy.context).toEqual(context)
  const { tokensBefore } = events.find(({ event }) => event === 'context_compacted')!.data
  expect(tokensBefore).toBeLessThan(0.7 * WINDOW)
  const summary = accepted(provider, '[policy]').find(isSummary)!
  expect(String(summary.body.messages.at(-1)!.content)).toContain('Keep colors.')
  for (const [field, value] of [
    ['compactAt', 0.1],
    ['compactAt', 'early'],
    ['keepTokens', -1],
    ['keepTokens', 1.5],
    ['instructions', 'x'.repeat(4_001)],
  ] as const) {
    const error = errorOf(await server.post(PATH, { instruction: 'x', policy: { context: { [field]: value } } }))
    expect(error).toMatchObject({ status: 400, code: 'invalid_request', param: `policy.context.${field}` })
  }
})
