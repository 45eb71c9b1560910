/**
 * Tests of the scripted provider in all of its dialects: real servers work with each of them, and each refuses what its
 * provider refuses. The tests of one dialect are beside it.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Server, startServer } from '../server.ts'
import { chatCompletions } from './chat-completions.ts'
import { openFakeGemini } from './gemini.ts'
import { openFakeAnthropic } from './messages.ts'
import { openFakeOpenAi } from './responses.ts'
import type { Reply } from './script.ts'
import { type ModelProvider, type ServeOptions, serveDialect } from './serve.ts'

// biome-ignore-start lint/suspicious/noExplicitAny: each test reads the fields of its own dialect
type Provider = ModelProvider<any>
const jsonOf = (response: Response) => response.json() as Promise<any>
// biome-ignore-end lint/suspicious/noExplicitAny: as above

const DIALECTS = {
  anthropic: { open: openFakeAnthropic, window: /prompt is too long|exceed context limit/, path: '/messages' },
  openai: { open: openFakeOpenAi, window: /exceeds the context window of this model/, path: '/responses' },
  google: {
    open: openFakeGemini,
    window: /exceeds the maximum number of tokens/,
    path: '/models/m:streamGenerateContent',
  },
  'openai-compatible': {
    open: (options: ServeOptions & { readonly window?: number } = {}) =>
      serveDialect(chatCompletions({ counts: true, pairsCalls: true, ...options }), options),
    window: /maximum context length is/,
    path: '/chat/completions',
  },
} as const
type Name = keyof typeof DIALECTS
const NAMES = Object.keys(DIALECTS) as Name[]

const providers = new Map<Name, Provider>()
let server: Server

beforeAll(async () => {
  for (const name of NAMES) providers.set(name, await DIALECTS[name].open())
  const models = Object.fromEntries([...providers].map(([name, { model, url }]) => [name, { ...model, baseUrl: url }]))
  const env = Object.assign({}, ...[...providers.values()].map((provider) => provider.env))
  server = await startServer({ config: { models }, env })
})
afterAll(async () => {
  await server?.stop()
  for (const provider of providers.values()) await provider.close()
})

const CALL = { name: 'code_execution', args: { code: "print('x' * 1500)", language: 'python' } }
const INSTRUCTION = 'Work step by step. '.repeat(600)

async function run(model: Name, instruction: string) {
  const body = { instruction, model, tools: ['code_execution'], systemInstruction: INSTRUCTION }
  const { status, body: answer, text } = await server.post('/v1beta/interactions', body)
  expect(status, text).toBe(200)
  return answer
}

const refusals = (provider: Provider) => provider.requests.flatMap(({ refused }) => refused ?? [])

describe.each(NAMES)('%s', (name) => {
  it('signs reasoning, takes it back unchanged, and bills the repeated prefix as cached', async () => {
    const provider = providers.get(name)!
    const turn: Reply = { reasoning: ['I think ', 'first.'], text: 'Working.', toolCalls: [CALL, CALL], argPieces: 3 }
    provider.when('[tools]', turn, turn, turn, { reasoning: 'Enough.', text: ['All ', 'done.'] })
    const answer = await run(name, '[tools]')
    expect(answer).toMatchObject({ status: 'completed' })
    expect(answer.output).toMatch(/All done\.$/)
    expect(refusals(provider)).toEqual([])
    const { cached_input_tokens: cached, input_tokens: input } = answer.usage
    expect(cached / input).toBeGreaterThan(0.6)
    expect(answer.usage.reasoning_tokens ?? 1).toBeGreaterThan(0)
  })

  it.each(['truncate', 'reset', 'error-event'] as const)(
    'breaks its stream (%s), and the run has the whole answer',
    async (how) => {
      const provider = providers.get(name)!
      const words = Array.from({ length: 6 }, (_, i) => `${i} ${'word '.repeat(30)}`)
      const whole = words.join('')
      // Two fragments of text are shown when the fourth fragment of all does not come.
      const broken: Reply = { reasoning: 'Hm.', text: words, fault: `${how}-after:4` }
      let calls = 0
      provider.when(`[${how}]`, ({ body }) => (calls++ === 0 ? broken : { text: restOf(whole, JSON.stringify(body)) }))
      expect(await run(name, `[${how}]`)).toMatchObject({ status: 'completed', output: whole })
      expect(calls).toBe(2)
      expect(refusals(provider)).toEqual([])
    },
  )

  it("refuses a prompt that exceeds the window, with its provider's error", async () => {
    const small = (await DIALECTS[name].open({ window: 50 })) as Provider
    const text = 'word '.repeat(1_000)
    const message = { role: 'user', content: text }
    const body = {
      model: 'm',
      max_tokens: 1,
      messages: [message],
      input: [message],
      contents: [{ role: 'user', parts: [{ text }] }],
    }
    const response = await fetch(small.url + DIALECTS[name].path, { method: 'POST', body: JSON.stringify(body) })
    expect(response.status).toBe(400)
    expect(await response.text()).toMatch(DIALECTS[name].window)
    await small.close()
  })
})

/** The rest of an answer for a request that has the shown part of it. */
function restOf(whole: string, request: string): string {
  let length = whole.length
  while (length > 0 && !request.includes(whole.slice(0, length))) length--
  return whole.slice(length)
}

it('refuses reasoning of OpenAI behind an edited prefix or with edited text', async () => {
  const { url } = providers.get('openai')!
  providers.get('openai')!.when('[seal]', { reasoning: 'Because.', text: 'Yes.' })
  const post = (input: readonly object[]) =>
    fetch(`${url}/responses`, { method: 'POST', body: JSON.stringify({ model: 'm', input }) })
  const question = { role: 'user', content: 'Is it? [seal]' }
  const said = await (await post([question])).text()
  const [, event] = /output_item.done\ndata: (.*)/.exec(said)!
  const { item } = JSON.parse(event!)
  const rest = [
    { role: 'assistant', content: 'Yes.' },
    { role: 'user', content: 'And? [seal]' },
  ]
  expect((await post([question, item, ...rest])).status).toBe(200)
  const codeOf = async (input: readonly object[]) => jsonOf(await post(input)).then(({ error }) => error.code)
  expect(await codeOf([{ ...question, content: 'Was it? [seal]' }, item, ...rest])).toBe('invalid_encrypted_content')
  const edited = { ...item, summary: [{ type: 'summary_text', text: 'Because!' }] }
  expect(await codeOf([question, edited, ...rest])).toBe('invalid_encrypted_content')
})

it('refuses a call of Gemini without its signature or with edited arguments', async () => {
  const { url } = providers.get('google')!
  const post = async (parts: readonly object[]) => {
    const contents = [
      { role: 'user', parts: [{ text: 'Go.' }] },
      { role: 'model', parts },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: {} } }] },
    ]
    const response = await fetch(`${url}/models/m:streamGenerateContent`, {
      method: 'POST',
      body: JSON.stringify({ contents }),
    })
    return (await jsonOf(response)).error.message
  }
  expect(await post([{ functionCall: { name: 'f', args: {} } }])).toMatch('missing a thought_signature')
  expect(await post([{ functionCall: { name: 'f', args: {} }, thoughtSignature: 'AAAA' }])).toMatch('Corrupted')
})

it('breaks the same share of the same calls for the same seed', async () => {
  const statuses = async (seed: number) => {
    const provider = await openFakeOpenAi({ faults: { seed, refused: 0.5 } })
    provider.when('go', () => ({ text: 'ok' }))
    const found: number[] = []
    for (let i = 0; i < 20; i++) {
      const input = [{ role: 'user', content: `go ${i % 5}` }]
      const body = JSON.stringify({ model: 'm', input })
      found.push((await fetch(`${provider.url}/responses`, { method: 'POST', body })).status)
    }
    await provider.close()
    return found
  }
  const first = await statuses(7)
  expect(await statuses(7)).toEqual(first)
  expect(await statuses(8)).not.toEqual(first)
  expect(new Set(first)).toEqual(new Set([200, 503]))
})
