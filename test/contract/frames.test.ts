/**
 * Checks that a run that another worker resumes sends what it would have sent without the interruption: the same system
 * prompt, tools and messages, byte for byte, even if the tools and their descriptions have changed since then.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type FakeAnthropic, type MessagesRequest, openFakeAnthropic } from '../support/model-provider/messages.ts'
import { type Server, startServer } from '../support/server.ts'
import { checkEnded, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const READS = { annotations: { readOnlyHint: true } }
const CALL = { toolCalls: [{ name: 'm__say', args: { n: 1 } }] }
const LONG = 'This is what I have found so far. '.repeat(12)

let provider: FakeAnthropic
let mcp: FakeMcp
let dataDir: string
let server: Server
let uninterrupted: readonly string[]

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'errand-frames-'))
  ;[provider, mcp] = await Promise.all([openFakeAnthropic(), openFakeMcp()])
  provider.when(
    '[framed]',
    { reasoning: ['I look ', 'first.'], ...CALL },
    { reasoning: 'Once more.', text: LONG, ...CALL },
    { reasoning: 'Enough.', text: 'Done.' },
  )
  asBefore()
  server = await start()
  const id = await begin()
  await finish(id)
  uninterrupted = bodies(0)
  expect(uninterrupted).toHaveLength(3)
})
afterAll(async () => {
  await server?.stop('SIGKILL')
  await Promise.all([provider?.close(), mcp?.close()])
  await rm(dataDir, { recursive: true, force: true })
})
beforeEach(asBefore)

function asBefore(): void {
  mcp.tools = [{ name: 'say', description: 'Says it.', ...READS }]
  mcp.instructions = 'Say it once.'
  mcp.onCall = ({ id, params }, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const { progressToken } = params._meta
    const progress = { method: 'notifications/progress', params: { progressToken, progress: 1 } }
    const result = { id, result: { content: [{ type: 'text', text: 'Said.' }] } }
    for (const message of [progress, result])
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
    response.end()
    return undefined
  }
}

/** Changes the system prompt, a description and the list, like an upgrade of the MCP server. */
function upgrade(): void {
  mcp.tools = [
    { name: 'whisper', ...READS },
    { name: 'say', description: 'Says it aloud.', ...READS },
  ]
  mcp.instructions = 'Say it twice.'
}

function start(crashAt?: string): Promise<Server> {
  return startServer({
    dataDir,
    config: {
      models: { framed: { ...provider.model, baseUrl: provider.url } },
      limits: ROOMY,
      egress: { allowPrivate: [mcp.address] },
    },
    env: { ...provider.env, ERRAND_LEASE_S: '1', ...(crashAt !== undefined && { ERRAND_CRASH_AT: crashAt }) },
    ...(server && { key: server.key }),
  })
}

const BODY = {
  instruction: '[framed]',
  systemInstruction: 'Be exact.',
  model: 'framed',
  tools: ['code_execution'],
  background: true,
}

async function begin(): Promise<string> {
  const { status, body } = await server.post(PATH, { ...BODY, mcp: [{ name: 'm', url: mcp.url }] })
  expect(status).toBe(200)
  return body.interactionId
}

async function finish(id: string) {
  const interaction = await ended(server, id)
  await checkEnded(server, id)
  expect(interaction).toMatchObject({ status: 'completed', output: expect.stringMatching(/Done\.$/) })
  return interaction
}

/** Requests since the `from`th, as the provider got them. */
function bodies(from: number): string[] {
  return provider.requests.slice(from).map(({ body }) => JSON.stringify(body))
}

/** True if a request continues an answer: the messages of an uninterrupted request come first, and the rest is equal. */
function continues(text: string): boolean {
  const { messages, ...frame } = withoutBreakpoints(text)
  return uninterrupted.map(withoutBreakpoints).some(({ messages: before, ...rest }) => {
    const begins = JSON.stringify(messages.slice(0, before.length)) === JSON.stringify(before)
    return begins && JSON.stringify({ ...frame, max_tokens: 0 }) === JSON.stringify({ ...rest, max_tokens: 0 })
  })
}

/** Cache breakpoints move with the end of the conversation. */
function withoutBreakpoints(text: string): MessagesRequest {
  return JSON.parse(text, (key, value) => (key === 'cache_control' ? undefined : value))
}

async function crashAt(point: string, whenDown = () => {}): Promise<string[]> {
  await server.stop('SIGKILL')
  server = await start(point)
  const from = provider.requests.length
  // A server that dies when the run is accepted does not answer.
  await begin().catch(() => {})
  await until(() => server.process.signalCode !== null)
  whenDown()
  server = await start()
  await finish((await server.get(PATH)).body.interactions[0].id)
  return bodies(from)
}

/** Not `files-stored`: it comes after the last request, like `sandbox-gone`. */
describe('a run that is killed', () => {
  it.each([
    ...['accepted', 'claimed', 'before-write:2', 'after-write:2', 'model-speaks:1'],
    ...['tool-begins:2', 'tool-speaks:1', 'tool-ended:1', 'sandbox-gone'],
  ])('at %s sends the same requests as without the kill', async (point) => {
    const sent = await crashAt(point)
    expect([...new Set(sent)]).toEqual(uninterrupted)
  })

  it.each(['after-write:3', 'before-write:4', 'tool-begins:1', 'tool-ended:2', 'model-speaks:4', 'model-speaks:6'])(
    'at %s keeps its system prompt, tools and messages when the server comes back with others',
    async (point) => {
      const sent = await crashAt(point, upgrade)
      for (const body of sent) if (!continues(body)) expect(uninterrupted).toContain(body)
      expect(provider.requests.every(({ refused, dropped }) => !refused && !dropped?.length)).toBe(true)
    },
  )
})

it('answers a call of a tool that is gone since the restart with what is left', async () => {
  await server.stop('SIGKILL')
  server = await start('after-write:3')
  const id = await begin()
  await until(() => server.process.signalCode !== null)
  mcp.tools = [{ name: 'whisper', ...READS }]
  server = await start()
  const { executionTrace } = await finish(id)
  expect(executionTrace.filter(({ type }: { type: string }) => type === 'tool_result').at(-1).output).toMatch(
    /^The tool "m__say" is no longer available\. The tools are: code_execution, job, m__whisper\.$/,
  )
})

it('stores the frame of a run once', async () => {
  const id = await begin()
  await finish(id)
  const rows = await server.stored.query('select frame from frames where interaction_id = ?', id)
  expect(rows).toHaveLength(1)
  const { prompt, note, tools } = JSON.parse(`${rows[0]!.frame}`)
  expect(prompt).toMatch(/Say it once\.$/)
  expect(prompt).toContain('Limits of the whole task: 600 s, 65536 output tokens.')
  const { createTime } = (await server.get(`${PATH}/${id}`)).body
  expect(note).toBe(`\n\nToday is ${createTime.slice(0, 10)} (UTC).`)
  expect(tools.map(({ name }: { name: string }) => name)).toEqual(['code_execution', 'job', 'm__say'])
  const plain = await server.post(PATH, { instruction: '[framed]', model: 'framed', systemInstruction: 'Be exact.' })
  const none = await server.stored.query('select frame from frames where interaction_id = ?', plain.body.interactionId)
  expect(none).toEqual([])
})
