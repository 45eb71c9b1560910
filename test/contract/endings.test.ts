/** Checks that runs end with an answer: notices before a limit, a reminder after an empty reply, a fallback after a refusal. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider, type RecordedRequest, type Reply } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { checkEnded, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TOOLS = ['file_write']
const CALL = { toolCalls: [{ name: 'file_write', args: { path: 'a.txt', content: 'a' } }] }
const NOTICE = /^What is left of this run's limits: (.*)\. Plan your remaining steps/
const EMPTY = /^Your last reply was empty\./

let provider: FakeProvider
let spare: FakeProvider
let dataDir: string
let server: Server
beforeAll(async () => {
  ;[provider, spare] = await Promise.all([openFakeProvider(), openFakeProvider()])
  dataDir = await mkdtemp(join(tmpdir(), 'errand-endings-'))
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([provider?.close(), spare?.close()])
  await rm(dataDir, { recursive: true, force: true })
})
beforeEach(() => {
  provider.reset()
  spare.reset()
})

function start(key?: string): Promise<Server> {
  const model = { provider: 'openai-compatible', model: 'fake' }
  const models = {
    main: { ...model, baseUrl: provider.url, price: { input: 0, output: 1 }, fallbacks: ['spare'] },
    spare: { ...model, baseUrl: spare.url, price: { input: 0, output: 1 } },
    alone: { ...model, baseUrl: provider.url },
  }
  const options = { config: { models, limits: ROOMY }, env: { ERRAND_LEASE_S: '1' } }
  return startServer({ ...options, dataDir, ...(key !== undefined && { key }) })
}

async function begin(instruction: string, fields: object = {}): Promise<string> {
  const { status, body } = await server.post(PATH, { instruction, model: 'main', background: true, ...fields })
  expect(status).toBe(200)
  return body.interactionId
}

async function finish(id: string) {
  await ended(server, id)
  const { interaction, events } = await checkEnded(server, id)
  const notices = events.filter(({ event }) => event === 'notice').map(({ data }) => data)
  return { interaction, notices }
}

async function run(instruction: string, fields: object = {}) {
  return finish(await begin(instruction, fields))
}

/** Kills the server when the provider has got that many requests, and starts it again. */
async function crashAfter(requests: number): Promise<void> {
  await until(() => provider.requests.length === requests)
  await server.stop('SIGKILL')
  server = await start(server.key)
}

const messagesOf = ({ body }: RecordedRequest) => body.messages
const asked = (request: RecordedRequest, what: RegExp) =>
  messagesOf(request).filter(({ role, content }) => role === 'user' && what.test(String(content)))
const uses = (output: number): Reply => ({ ...CALL, usage: { input: 10, output } })

describe('notices', () => {
  const seven = (sixth: Reply | readonly Reply[] = uses(10_000)) => [
    ...Array.from({ length: 5 }, () => uses(10_000)),
    sixth,
    { text: 'Done.' },
  ]
  const LIMITS = { tools: TOOLS, policy: { maxOutputTokens: 65_536, maxCost: 0.066 } }

  it('are sent at 75 % and at 90 % of each limit, those of one turn in one message', async () => {
    provider.when('[notices]', ...seven())
    const { interaction, notices } = await run('[notices]', LIMITS)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.', stopReason: 'end_turn' })
    expect(notices).toEqual([
      { kind: 'tokens', left: 15_536 },
      { kind: 'cost', left: 0.016 },
      { kind: 'tokens', left: 5_536 },
      { kind: 'cost', left: 0.006 },
    ])
    const texts = asked(provider.requests.at(-1)!, NOTICE).map(({ content }) => NOTICE.exec(String(content))![1])
    expect(texts).toEqual(['15536 output tokens, $0.016', '5536 output tokens, $0.006'])
    // Each request begins with the one before it.
    for (const [i, request] of provider.requests.slice(1).entries()) {
      const before = messagesOf(provider.requests[i]!)
      expect(messagesOf(request).slice(0, before.length)).toEqual(before)
    }
  })

  it('are neither lost nor repeated if the server is killed before the model answers', async () => {
    provider.when('[killed]', ...seven([{ fault: 'stall' }, uses(10_000)]))
    const id = await begin('[killed]', LIMITS)
    await crashAfter(6)
    const { notices } = await finish(id)
    expect(notices).toHaveLength(4)
    const [, , , , , before, after, last] = provider.requests
    expect(asked(before!, NOTICE)).toHaveLength(1)
    expect(after!.body).toEqual(before!.body)
    expect(asked(last!, NOTICE)).toHaveLength(2)
  })

  it('stay before an answer that a kill interrupted', async () => {
    const long = 'x'.repeat(300)
    const broken = [{ text: [long, 'y'], fault: 'stall-after:1' }, { text: 'never' }] as const
    provider.when('[broken]', ...Array.from({ length: 5 }, () => uses(10_000)), broken, { text: 'the end.' })
    const id = await begin('[broken]', LIMITS)
    await until(async () => (await server.get(`${PATH}/${id}`)).body.output !== '')
    await crashAfter(6)
    const { interaction, notices } = await finish(id)
    expect(interaction.output).toBe(`${long}the end.`)
    expect(notices).toHaveLength(2)
    const [before, after] = provider.requests.slice(-2).map(messagesOf)
    expect(after!.slice(0, before!.length)).toEqual(before)
  })

  it('are not sent when the next reply is the last one, and not to a run without tools', async () => {
    provider.when('[last]', uses(3_400), { text: 'Done.' })
    const { notices, interaction } = await run('[last]', { tools: TOOLS, policy: { maxOutputTokens: 4_000 } })
    expect(interaction).toMatchObject({ output: 'Done.', stopReason: 'max_output_tokens' })
    expect(notices).toEqual([])
    provider.when('[plain]', [{ text: '', usage: { input: 10, output: 3_400 } }, { text: 'Done.' }])
    expect((await run('[plain]', { policy: { maxOutputTokens: 4_000 } })).notices).toEqual([])
  })
})

describe('an empty reply', () => {
  it.each<[string, object]>([
    ['of a plain run', {}],
    ['of a run with tools', { tools: TOOLS }],
  ])('%s is asked for again, once', async (_, fields) => {
    provider.when('[empty]', [{ reasoning: 'Hm.', text: '' }, { text: 'Here.' }])
    const { interaction } = await run('[empty]', fields)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Here.', stopReason: 'end_turn' })
    expect(interaction.usage).toMatchObject({ model_calls: 2 })
    const [first, second] = provider.requests.map(messagesOf)
    expect(second!.slice(0, -1)).toEqual(first)
    expect(second!.at(-1)).toMatchObject({ role: 'user', content: expect.stringMatching(EMPTY) })
  })

  it('after work was done is asked for again; a second one ends the run', async () => {
    provider.when('[work]', CALL, [{ text: '' }, { text: '' }])
    const { interaction } = await run('[work]', { tools: TOOLS })
    expect(interaction).toMatchObject({ status: 'completed', output: '', stopReason: 'end_turn' })
    expect(provider.requests).toHaveLength(3)
  })

  it('is asked for again with the same request after the server was killed', async () => {
    provider.when('[empty, killed]', [{ text: '' }, { fault: 'stall' }, { text: 'Here.' }])
    const id = await begin('[empty, killed]')
    await crashAfter(2)
    expect((await finish(id)).interaction).toMatchObject({ output: 'Here.', usage: { model_calls: 2 } })
    expect(provider.requests).toHaveLength(3)
    expect(provider.requests[2]!.body).toEqual(provider.requests[1]!.body)
  })
})

describe('a refusal', () => {
  const refusal = (text: string): Reply => ({ text, finish: 'content_filter', usage: { input: 10, output: 1_000 } })

  it.each<[string, string, object]>([
    ['', '', {}],
    [' of which only held text exists', 'I can’t', { tools: TOOLS }],
  ])('before anything was shown%s is answered by the fallback, with a warning', async (_, text, fields) => {
    provider.when('[refused]', refusal(text))
    spare.when('[refused]', { text: 'Here.' })
    const { interaction } = await run('[refused]', fields)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Here.', stopReason: 'end_turn' })
    expect(interaction.usage).toMatchObject({ model_calls: 2 })
    expect(interaction.warnings.map(({ code, message }: Record<string, string>) => [code, message])).toContainEqual([
      'model_fallback',
      'The model main did not answer, so spare was asked. Its provider refused the answer (content filter).',
    ])
  })

  it('ends the run as before if part of the answer was shown, or without a fallback', async () => {
    provider.when('[shown]', refusal('I can’t'))
    expect((await run('[shown]')).interaction).toMatchObject({ output: 'I can’t', stopReason: 'content_filter' })
    provider.when('[alone]', refusal(''))
    const { interaction } = await run('[alone]', { model: 'alone' })
    expect(interaction).toMatchObject({ status: 'completed', output: '', stopReason: 'content_filter' })
    expect(spare.requests).toEqual([])
  })
})

describe('output: "final"', () => {
  const long = 'I have looked at it.\n\nHere is what I found. '.repeat(8)
  const FINAL = { tools: TOOLS, output: 'final' }

  it('is the text of the last turn; the stream and the next interaction have all of it', async () => {
    provider.when('[final]', { text: long, ...CALL }, { text: 'The answer.' })
    const id = await begin('[final]', FINAL)
    const { interaction } = await finish(id)
    expect(interaction).toMatchObject({ output: 'The answer.', resolved: { output: 'final' } })
    const { events } = await checkEnded(server, id)
    const shown = events.filter(({ event }) => event === 'partial_output').map(({ data }) => data)
    expect(shown.map(({ text }) => text).join('')).toBe(`${long}\n\nThe answer.`)
    expect(shown.map(({ newTurn = false }) => newTurn)).toEqual([...shown.slice(1).map(() => false), true])
    const all = await run('[final]', { tools: TOOLS })
    expect(all.interaction.output).toBe(`${long}\n\nThe answer.`)
    expect(all.interaction.resolved).not.toHaveProperty('output')

    provider.when('[next]', { text: 'Next.' })
    await run('[next]', { previousInteractionId: id })
    expect(JSON.stringify(messagesOf(provider.requests.at(-1)!))).toContain('I have looked at it.')
  })

  it('is joined over a kill and over a broken stream', async () => {
    const last: Reply[] = [
      { text: ['The ', 'never'], fault: 'stall-after:1' },
      { text: ['answer ', 'never'], fault: 'reset-after:1' },
      { text: 'is 4.' },
    ]
    provider.when(
      '[final, killed]',
      { text: long, ...CALL },
      ...last.map((reply) => ({ ...reply, text: padded(reply) })),
    )
    const id = await begin('[final, killed]', FINAL)
    await until(async () => (await server.get(`${PATH}/${id}`)).body.output?.startsWith('The '))
    await crashAfter(2)
    const { interaction } = await finish(id)
    expect(interaction.output.replaceAll('.'.repeat(300), '')).toBe('The answer is 4.')
  })

  it('is the text before the last turn if that one has none', async () => {
    provider.when('[silent]', { text: long, ...CALL }, [{ text: '' }, { text: '' }])
    expect((await run('[silent]', FINAL)).interaction).toMatchObject({ output: long, stopReason: 'end_turn' })
  })

  it('refuses other values', async () => {
    const { status, body } = await server.post(PATH, { instruction: 'x', output: 'last' })
    expect([status, body.error.param]).toEqual([400, 'output'])
  })
})

/** The reply's first text, so long that it is not held back. */
function padded({ text }: Reply): string | string[] {
  return typeof text === 'string' ? text : [`${text![0]}${'.'.repeat(300)}`, text![1]!]
}
