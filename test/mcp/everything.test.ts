/** The public reference MCP server over Streamable HTTP: the tools and results that the model gets. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider, type Reply } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { type Everything, startEverything } from './everything.ts'

let provider: FakeProvider
let everything: Everything
let server: Server
beforeAll(async () => {
  ;[provider, everything] = await Promise.all([openFakeProvider(), startEverything()])
  server = await startServer({ provider, config: { egress: { allowPrivate: [everything.address] } } })
})
afterAll(async () => {
  await server?.stop()
  everything?.stop()
  await provider?.close()
})

let runs = 0

/** Starts a run in which the model makes these calls, one per turn. */
async function run(calls: readonly { name: string; args: object }[], mcp: object = {}, rest: object = {}) {
  const marker = `[run ${++runs}]`
  const turns: Reply[] = calls.map((call) => ({ toolCalls: [call] }))
  provider.when(marker, ...turns, { text: 'Done.' })
  const asked = provider.requests.length
  const { status, body } = await server.post('/v1beta/interactions', {
    instruction: marker,
    mcp: [{ name: 'every', url: everything.url, ...mcp }],
    ...rest,
  })
  const requests = provider.requests.slice(asked).map((request) => request.body)
  const results = (body.executionTrace ?? []).filter(({ type }: { type: string }) => type === 'tool_result')
  return { status, body, requests, outputs: results.map(({ output }: { output: string }) => output) as string[] }
}

const offered = (request: { tools?: readonly { function: { name: string } }[] } | undefined) =>
  (request?.tools ?? []).map((tool) => tool.function.name)

describe('server-everything over Streamable HTTP', () => {
  it('offers its tools as server__tool, and tools that read its resources and prompts', async () => {
    const { requests, body } = await run([])
    expect(body.warnings).toEqual([])
    expect(offered(requests[0])).toEqual(
      expect.arrayContaining(['every__echo', 'every__get-sum', 'every__read_resource', 'every__get_prompt']),
    )
  })

  it('includes the server’s instructions in the system prompt', async () => {
    const { requests } = await run([])
    const system = requests[0]!.messages.find((message) => message.role === 'system')
    expect(system?.content).toContain('Instructions of the MCP server every for its tools')
  })

  it('answers calls, including one with a wrong argument', async () => {
    const { outputs, body } = await run([
      { name: 'every__echo', args: { message: 'höhö 🙂' } },
      { name: 'every__get-sum', args: { a: 2, b: 40 } },
      { name: 'every__get-sum', args: { a: 'two' } },
      { name: 'every__nothing', args: {} },
    ])
    expect(body.status).toBe('completed')
    expect(outputs[0]).toBe('Echo: höhö 🙂')
    expect(outputs[1]).toContain('42')
    expect(outputs[2]).toMatch(/error/i)
    expect(outputs[3]).toContain('There is no tool "every__nothing"')
  })

  it('shows images to models with vision, and describes them to others', async () => {
    const { outputs } = await run([{ name: 'every__get-tiny-image', args: {} }])
    expect(outputs[0]).toMatch(/\[image.*image\/png/)
  })

  it('returns structured content, resource links and embedded resources as text', async () => {
    const { outputs } = await run([
      { name: 'every__get-structured-content', args: { location: 'New York' } },
      { name: 'every__get-resource-links', args: { count: 2 } },
      { name: 'every__get-resource-reference', args: { resourceType: 'Text', resourceId: 1 } },
    ])
    expect(outputs[0]).toContain('temperature')
    expect(outputs[1]).toMatch(/\[link to the resource .+demo:\/\/resource/)
    expect(outputs[2]).toMatch(/\[resource demo:\/\/resource/)
  })

  it('lists and reads resources, and gets prompts', async () => {
    const { outputs } = await run([
      { name: 'every__list_resources', args: {} },
      { name: 'every__read_resource', args: { uri: 'demo://resource/dynamic/text/1' } },
      { name: 'every__read_resource', args: { uri: 'demo://nowhere' } },
      { name: 'every__list_prompts', args: {} },
      { name: 'every__get_prompt', args: { name: 'simple-prompt' } },
    ])
    expect(outputs[0]).toContain('"uri"')
    expect(outputs[1]).toContain('[resource demo://resource/dynamic/text/1')
    expect(outputs[2]).toContain('The server answered with an error')
    expect(outputs[3]).toContain('simple-prompt')
    expect(outputs[4]).toContain('user:')
  })

  it('streams the progress of a long call', async () => {
    const marker = `[run ${++runs}]`
    const name = 'every__trigger-long-running-operation'
    provider.when(marker, { toolCalls: [{ name, args: { duration: 1, steps: 4 } }] }, { text: 'Done.' })
    const stream = await server.stream('/v1beta/interactions:stream', {
      instruction: marker,
      mcp: [{ name: 'every', url: everything.url }],
    })
    const events = await stream.all()
    const told = events.filter(({ event }) => event === 'tool_output').map(({ data }) => data.text)
    expect(told.join('')).toContain('4/4')
  })

  it('offers only the allowed tools', async () => {
    const { requests, outputs, body } = await run([{ name: 'every__get-sum', args: { a: 1, b: 2 } }], {
      allowedTools: ['every__echo', 'nothing'],
    })
    expect(offered(requests[0])).toEqual(['every__echo'])
    expect(body.warnings).toMatchObject([{ code: 'mcp_tools', message: expect.stringContaining('no tool "nothing"') }])
    expect(outputs[0]).toContain('There is no tool "every__get-sum"')
  })

  it('ends the session, and lists the server in the resolved run and the audit without a secret', async () => {
    const { body } = await run([], { authentication: 'a-bearer-token-1f2e3d' })
    expect(body.resolved.mcp).toEqual([{ name: 'every', url: everything.url, authentication: { type: 'bearer' } }])
    expect(JSON.stringify(body)).not.toContain('1f2e3d')
  })

  it('warns about an unreachable server, and the run continues', async () => {
    const { body, requests } = await run([], { url: 'http://127.0.0.1:1/mcp' })
    expect(body.status).toBe('completed')
    expect(body.warnings).toMatchObject([{ code: 'mcp_unavailable' }])
    expect(offered(requests[0])).toEqual([])
  })
})
