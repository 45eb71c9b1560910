/** MCP servers during a run: changed tool lists, lost sessions, interrupted and cancelled calls. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { checkEnded } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { type FakeMcp, openFakeMcp, sendResult } from './fake-mcp.ts'

let provider: FakeProvider
let mcp: FakeMcp
let server: Server
let plain: Pick<FakeMcp, 'tools' | 'intercept' | 'onCall'>
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  plain = { tools: mcp.tools, intercept: mcp.intercept, onCall: mcp.onCall }
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' }
  server = await startServer({
    provider,
    env: { ERRAND_LEASE_S: '1' },
    config: {
      egress: { allowPrivate: [mcp.address] },
      models: { 'svc-3.5-flash': model, seeing: { ...model, vision: true } },
    },
  })
})
afterAll(async () => {
  await server?.stop()
  await mcp?.close()
  await provider?.close()
})
afterEach(() => {
  Object.assign(mcp, plain)
  mcp.requests.length = 0
})

let runs = 0
async function start(calls: readonly string[], rest: object = {}) {
  const marker = `[running ${++runs}]`
  provider.when(marker, ...calls.map((name) => ({ toolCalls: [{ name, args: { n: 1 } }] })), { text: 'Done.' })
  const { body } = await server.post('/v1beta/interactions', {
    instruction: marker,
    background: true,
    mcp: [{ name: 'm', url: mcp.url }],
    ...rest,
  })
  return { id: body.id as string, marker }
}

async function ended(id: string) {
  await expect
    .poll(async () => (await server.get(`/v1beta/interactions/${id}`)).body.status, { timeout: 40_000 })
    .not.toBe('running')
  const { interaction } = await checkEnded(server, id)
  const outputs = interaction.executionTrace.filter(({ type }: { type: string }) => type === 'tool_result')
  return { interaction, outputs: outputs.map(({ output }: { output: string }) => output) as string[] }
}

describe('a changed tool list', () => {
  it('is used in the model’s next turn', async () => {
    mcp.intercept = (request, response) => {
      if (request.method !== 'initialize') return false
      const capabilities = { tools: { listChanged: true } }
      const serverInfo = { name: 'x', version: '1' }
      sendResult(response, request.id, { protocolVersion: '2025-11-25', capabilities, serverInfo })
      return true
    }
    mcp.onCall = ({ id }, response) => {
      mcp.tools = [{ name: 'grown' }]
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
      const result = { content: [{ type: 'text', text: 'changed' }] }
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
      return undefined
    }
    const asked = provider.requests.length
    const { id } = await start(['m__say', 'm__grown'])
    const { outputs } = await ended(id)
    expect(outputs).toEqual(['changed', 'changed'])
    const offered = provider.requests.slice(asked).map(({ body }) => body.tools!.map((tool) => tool.function.name))
    expect(offered).toEqual([['m__say'], ['m__grown'], ['m__grown']])
    const { events } = await checkEnded(server, id)
    const changes = events.filter(({ event }) => event === 'tools_changed').map(({ data }) => data)
    expect(changes).toEqual([{ added: ['m__grown'], removed: ['m__say'], changed: [] }])
  })
})

describe('a session', () => {
  it('is reopened if the server lost it, and the call is made', async () => {
    let forgotten = false
    mcp.intercept = (request, response) => {
      if (request.method !== 'tools/call' || forgotten) return false
      forgotten = true
      response.writeHead(404).end()
      return true
    }
    const { id } = await start(['m__say'])
    expect((await ended(id)).outputs).toEqual(['{"n":1}'])
    expect(mcp.requests.filter(({ method }) => method === 'initialize')).toHaveLength(2)
  })

  it('is ended at the server, and its id is sent with every request', async () => {
    const { id } = await start(['m__say'])
    await ended(id)
    const after = mcp.requests.slice(mcp.requests.findIndex(({ method }) => method === 'initialize') + 1)
    expect(new Set(after.map(({ headers }) => headers['mcp-session-id']))).toEqual(new Set(['a-session']))
    expect(after.at(-1)!.httpMethod).toBe('DELETE')
  })
})

describe('an interrupted call', () => {
  const call = () => expect.poll(() => mcp.calls().length, { timeout: 30_000 }).toBe(1)

  it('is cancelled at the server when the run is cancelled', async () => {
    mcp.onCall = () => new Promise(() => {})
    const { id } = await start(['m__say'])
    await call()
    expect((await server.post(`/v1beta/interactions/${id}:cancel`)).body.status).toBe('cancelled')
    await expect.poll(() => mcp.requests.map(({ method }) => method)).toContain('notifications/cancelled')
  })

  it('has an unknown outcome after its timeout, and the run continues', async () => {
    mcp.onCall = () => new Promise(() => {})
    const { id } = await start(['m__say'], { policy: { maxToolDuration: 1 } })
    const { interaction, outputs } = await ended(id)
    expect(interaction.status).toBe('completed')
    expect(outputs[0]).toMatch(/no answer within 1 s.*not known/)
  })

  it.each([
    ['unknown where it may have done something', {}, 1, /outcome is unknown/],
    ['made again where it only reads', { readOnlyHint: true }, 2, /^\{"n":1\}$/],
    ['made again where that changes nothing', { idempotentHint: true }, 2, /^\{"n":1\}$/],
  ])('after a crash: %s', async (_name, annotations, times, output) => {
    mcp.tools = [{ name: 'say', annotations }]
    mcp.onCall = () => new Promise(() => {})
    const { id } = await start(['m__say'])
    await call()
    await server.stop('SIGKILL')
    mcp.onCall = plain.onCall
    server = await startServer({ provider, dataDir: server.dataDir, key: server.key, env: { ERRAND_LEASE_S: '1' } })
    const { interaction, outputs } = await ended(id)
    expect(interaction.status).toBe('completed')
    expect(outputs[0]).toMatch(output)
    expect(mcp.calls()).toHaveLength(times)
  })
})

describe('an image', () => {
  const image = {
    type: 'image',
    mimeType: 'image/png',
    data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  }

  it('is shown to a model with vision', async () => {
    mcp.onCall = () => ({ content: [image, { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' }] })
    const { id, marker } = await start(['m__say'], { model: 'seeing' })
    const { outputs } = await ended(id)
    expect(outputs[0]).toBe('[image 1, image/png]\n[audio, audio/wav, 3 bytes: audio is not supported]')
    const last = provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).at(-1)!
    expect(JSON.stringify(last.body.messages)).toContain(image.data)
  })
})
