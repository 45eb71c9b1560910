/**
 * Checks prompt caching on a provider that bills by the longest common prefix with an earlier request (Anthropic's
 * API): long runs read nearly all of their input from the cache, also after SIGKILL and in follow-up interactions.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeAnthropic, type MessagesRequest, openFakeAnthropic } from '../support/model-provider/messages.ts'
import type { Reply } from '../support/model-provider/script.ts'
import { type Server, startServer } from '../support/server.ts'
import { checkEnded, ROOMY } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TURNS = 60
/** The public prices of Claude Opus, in US dollars per million tokens. */
const PRICE = { input: 5, output: 25, cachedInput: 0.5, cacheWrite: 6.25 }
/** Code whose output has 2,000 characters, about 500 tokens. */
const CODE = "print('0123456789abcdef' * 125)"
/** Instructions as long as those of an agent with some skills and MCP servers: about 20,000 tokens. */
const INSTRUCTION = 'Work step by step. '.repeat(4_000)

let provider: FakeAnthropic
let server: Server
let dataDir: string

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'errand-cache-'))
  provider = await openFakeAnthropic()
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(dataDir, { recursive: true, force: true })
})

function start(): Promise<Server> {
  const model = { ...provider.model, baseUrl: provider.url, price: PRICE }
  const models = { cached: model, uncached: { ...model, cache: 'off' } }
  return startServer({
    dataDir,
    config: { models, limits: ROOMY },
    env: provider.env,
    ...(server && { key: server.key }),
  })
}

/** Scripts `TURNS` tool calls with reasoning, then the answer. Each request for a turn calls `onTurn`. */
function works(marker: string, onTurn: (turn: number) => unknown = () => {}): void {
  provider.when(marker, ({ body }: { body: MessagesRequest }): Reply => {
    const turn = toolCalls(body)
    onTurn(turn)
    if (turn >= TURNS) return { reasoning: 'Enough.', text: 'Done.' }
    return { reasoning: `Step ${turn}.`, toolCalls: [{ name: 'code_execution', args: { code: `${CODE}  # ${turn}` } }] }
  })
}

/** Counts the tool calls since the last instruction. */
function toolCalls({ messages }: MessagesRequest): number {
  const isInstruction = ({ role, content }: MessagesRequest['messages'][number]) =>
    role === 'user' && (typeof content === 'string' || content.every(({ type }) => type !== 'tool_result'))
  const since = messages.slice(messages.findLastIndex(isInstruction))
  return since.filter(({ role }) => role === 'assistant').length
}

async function run(instruction: string, fields: object = {}) {
  const answer = await server.post(PATH, { instruction, model: 'cached', tools: ['code_execution'], ...fields })
  expect(answer.status, answer.text).toBe(200)
  await checkEnded(server, answer.body.interactionId)
  expect(answer.body).toMatchObject({ status: 'completed', output: 'Done.' })
  return answer.body
}

// biome-ignore lint/suspicious/noExplicitAny: usage of any answer
const cachedShare = ({ usage }: any): number => usage.cached_input_tokens / usage.input_tokens

it('reads at least 95 % of the input of 60 tool turns from the cache, at an eighth of the cost', async () => {
  works('[sixty]')
  const agent = { systemInstruction: INSTRUCTION }
  const cached = await run('[sixty]', agent)
  expect(cachedShare(cached)).toBeGreaterThanOrEqual(0.95)
  works('[sixty without]')
  const uncached = await run('[sixty without]', { ...agent, model: 'uncached' })
  expect(uncached.usage).toMatchObject({ cached_input_tokens: 0, cache_write_tokens: 0 })
  expect(Number(cached.usage.cost.amount) / Number(uncached.usage.cost.amount)).toBeLessThanOrEqual(0.13)
})

it('reads the cached conversation in a follow-up interaction', async () => {
  works('[first]')
  const first = await run('[first]')
  const before = provider.requests.length
  provider.when('[second]', { text: 'Done.' })
  const second = await run('[second]', { previousInteractionId: first.interactionId })
  expect(provider.requests).toHaveLength(before + 1)
  expect(cachedShare(second)).toBeGreaterThanOrEqual(0.95)
})

it('reads the prefix of a turn with more parallel calls than the provider looks back', async () => {
  const calls = Array.from({ length: 25 }, (_, i) => ({ name: 'code_execution', args: { code: `${CODE}  # ${i}` } }))
  provider.when('[wide]', { toolCalls: calls }, { toolCalls: calls }, { text: 'Done.' })
  const { usage } = await run('[wide]')
  // The first request is too short for the cache. The third reads the whole second one, so the cached share is the length of
  // the second request over the length of all three.
  const [first, second, third] = provider.requests.slice(-3).map(({ body }) => JSON.stringify(body).length)
  const shareRead = second! / (first! + second! + third!)
  expect(cachedShare({ usage })).toBeGreaterThan(0.95 * shareRead)
})

it('reads at least 95 % from the cache after the server was killed twice', { timeout: 180_000 }, async () => {
  // A run fails after the third stop, so this stops the server only twice.
  const kills = [17, 44]
  let killed = Promise.resolve()
  works('[killed]', (turn) => {
    if (turn !== kills[0]) return
    kills.shift()
    killed = killed.then(async () => {
      await server.stop('SIGKILL')
      server = await start()
    })
  })
  const body = { instruction: '[killed]', model: 'cached', tools: ['code_execution'], background: true }
  const { interactionId } = (await server.post(PATH, body)).body
  for (;;) {
    await killed
    const { body } = await server.get(`${PATH}/${interactionId}`).catch(() => ({ body: { status: 'running' } }))
    if (body.status !== 'running' && kills.length === 0) {
      expect(body).toMatchObject({ status: 'completed', output: 'Done.' })
      expect(cachedShare(body)).toBeGreaterThanOrEqual(0.95)
      return
    }
    if (body.status !== 'running') throw new Error(JSON.stringify(body.error))
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
})
