/**
 * Checks calls of MCP tools by code in the sandbox: results go to the code, events show each call (`via`), approvals and
 * redaction apply, and after a crash no call is made twice.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type Server, startServer } from '../support/server.ts'
import { type Call, javascript, outputsOf, python } from '../support/tool-run.ts'
import { checkEnded, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TOKEN = 'planted-mcp-t0ken-77ab'

let provider: FakeProvider
let mcp: FakeMcp
let dataDir: string
let server: Server
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = [
    {
      name: 'price',
      description: 'Returns the price of an article.',
      inputSchema: {
        type: 'object',
        properties: { id: { type: 'integer' }, currency: { type: 'string' } },
        required: ['id'],
      },
      annotations: { readOnlyHint: true },
    },
    { name: 'order', description: 'Orders an article.' },
    { name: 'dashed-name' },
  ]
  dataDir = await mkdtemp(join(tmpdir(), 'errand-mcp-code-'))
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([mcp?.close(), provider?.close()])
  await rm(dataDir, { recursive: true, force: true })
})

/** Answers with the tool and its arguments as structured content. */
const echo: FakeMcp['onCall'] = ({ params }) => ({
  content: [],
  structuredContent: { tool: params.name, args: params.arguments },
})
afterEach(() => {
  mcp.onCall = echo
  mcp.requests.length = 0
})

function start(key?: string): Promise<Server> {
  const config = { limits: ROOMY, egress: { allowPrivate: [mcp.address] } }
  mcp.onCall = echo
  return startServer({ provider, dataDir, config, env: { ERRAND_LEASE_S: '1' }, ...(key && { key }) })
}

let runs = 0
async function begin(calls: readonly Call[], fields: object = {}) {
  const marker = `[mcp from code ${++runs}]`
  provider.when(marker, ...calls.map((call) => ({ toolCalls: [call] })), { text: 'Done.' })
  const { status, body, text } = await server.post(PATH, {
    instruction: marker,
    tools: ['code_execution'],
    mcp: [{ name: 'shop', url: mcp.url, authentication: TOKEN }],
    background: true,
    ...fields,
  })
  expect(status, text).toBe(200)
  return { id: body.interactionId as string, marker }
}

interface Step {
  readonly type: string
  readonly step: number
  readonly name?: string
  readonly args?: unknown
  readonly output?: string
  readonly via?: number
}

async function finish(id: string) {
  await ended(server, id)
  const { interaction, events } = await checkEnded(server, id)
  expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  const trace: readonly Step[] = interaction.executionTrace
  const byCode = trace.filter(({ via }) => via !== undefined)
  return { interaction, events, byCode, outputs: outputsOf(trace.filter(({ via }) => via === undefined)) }
}

async function run(calls: readonly Call[], fields: object = {}) {
  return finish((await begin(calls, fields)).id)
}

const requestsOf = (marker: string) =>
  provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).map(({ body }) => body)

describe('Python', () => {
  it('200 look-ups cost one model turn, and the model sees only what the code prints', async () => {
    mcp.onCall = ({ params }) => ({ content: [], structuredContent: { price: params.arguments.id * 2 } })
    const code = `
import errand
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(6) as pool:
    found = list(pool.map(lambda i: errand.mcp.shop.price(id=i)['price'], range(200)))
print(sum(found))`
    const { id, marker } = await begin([python(code)])
    const { interaction, byCode, outputs } = await finish(id)
    expect(outputs).toEqual([String(199 * 200)])
    expect(interaction.usage).toMatchObject({ model_calls: 2, tool_calls: 201 })
    expect(byCode.filter(({ type }) => type === 'tool_call')).toHaveLength(200)
    expect(byCode.filter(({ type }) => type === 'tool_result')).toHaveLength(200)
    expect(JSON.stringify(requestsOf(marker).at(-1)!.messages).length).toBeLessThan(5_000)
  })

  it('returns text or structured content, and raises errors of the tool', async () => {
    const answers = [
      { content: [{ type: 'text', text: 'plain' }] },
      { content: [{ type: 'text', text: 'repeated' }], structuredContent: { list: [1, 2] } },
      { content: [{ type: 'text', text: 'out of stock' }], isError: true },
    ]
    mcp.onCall = () => answers.shift()!
    const code = `
import errand
shop = errand.mcp["shop"]
print(repr(shop.order(id=1)), shop["dashed-name"]({"odd key": 2})["list"])
try:
    shop.order()
except errand.ToolError as error:
    print(type(error).__name__, error)`
    const { outputs, byCode } = await run([python(code)])
    expect(outputs).toEqual(["'plain' [1, 2]\nToolError The tool reports an error:\nout of stock"])
    expect(byCode[0]).toMatchObject({ type: 'tool_call', step: 2, name: 'shop__order', args: { id: 1 }, via: 1 })
    expect(byCode[1]).toMatchObject({ type: 'tool_result', step: 3, output: 'plain', via: 1 })
    expect(mcp.calls().map(({ params }) => params.arguments)).toEqual([{ id: 1 }, { 'odd key': 2 }, {}])
  })

  it('lists servers and tools, with their signatures', async () => {
    const code = `
import errand
print(dir(errand.mcp), dir(errand.mcp.shop))
help(errand.mcp.shop)
try:
    errand.mcp.shop.pric
except AttributeError as error:
    print(error)
try:
    errand.mcp.nowhere
except AttributeError as error:
    print(error)`
    const { outputs } = await run([python(code)])
    expect(outputs[0]).toContain("['shop'] ['dashed-name', 'order', 'price']")
    expect(outputs[0]).toContain('price(*, id: int, currency: str = None)')
    expect(outputs[0]).toContain('Returns the price of an article.')
    expect(outputs[0]).toContain("The MCP server shop has no tool 'pric'")
    expect(outputs[0]).toContain("There is no MCP server 'nowhere'. The servers: shop.")
  })

  it('returns a result of several MiB as a whole; the log has its beginning and end', async () => {
    const text = `first ${'x'.repeat(5_000_000)} last`
    mcp.onCall = () => ({ content: [{ type: 'text', text }] })
    const { outputs, byCode } = await run([python('import errand; print(len(errand.mcp.shop.price(id=1)))')])
    expect(outputs).toEqual([String(text.length)])
    expect(byCode[1]!.output).toMatch(/^first x+\n.* bytes left out .*\nx+ last$/)
    expect(byCode[1]!.output!.length).toBeLessThan(5_000)
  })
})

describe('JavaScript', () => {
  it('awaits calls, and gets errors as exceptions', async () => {
    mcp.onCall = (request, response) =>
      request.params.name === 'order'
        ? { content: [{ type: 'text', text: 'out of stock' }], isError: true }
        : echo(request, response)
    const code = `
const both = await Promise.all([errand.mcp.shop.price({ id: 7 }), errand.mcp['shop']['dashed-name']()])
console.log(JSON.stringify(both), (await errand.tools()).length)
await errand.mcp.shop.order({ id: 1 }).catch((error) => console.log(error instanceof errand.ToolError, error.message))`
    const { outputs } = await run([javascript(code)])
    const [price, order] = outputs[0]!.split('\n')
    expect(price).toBe('[{"tool":"price","args":{"id":7}},{"tool":"dashed-name","args":{}}] 3')
    expect(order).toMatch(/^true The tool reports an error:/)
  })
})

describe('a call by code', () => {
  it('can reach no tool that the model could not call, and no path but its own', async () => {
    const code = `
import errand, json, os, urllib.request
base = 'http://127.0.0.1:' + os.environ['ERRAND_MCP_PORT']
def ask(path, body=None):
    try:
        with urllib.request.urlopen(base + path, body) as answer: return answer.status
    except urllib.error.HTTPError as error: return error.code, error.read().decode()[:80]
print(ask('/'), ask('/call', b'{'), ask('/call', b'{"server":"shop","tool":"order","args":[]}'))
print(ask('/call', b'{"server":"shop","tool":"order","args":{"a":"' + b'x' * 300_000 + b'"}}'))
print(ask('/call', b'{"server":"shop","tool":"order","args":{}}'))
try: errand.mcp.shop.price(id=1)
except errand.ToolError as error: print(error)`
    const { outputs, byCode } = await run([python(code)], {
      mcp: [{ name: 'shop', url: mcp.url, allowedTools: ['price'], requireApproval: ['price'] }],
    })
    expect(outputs[0]!.split('\n')).toEqual([
      expect.stringMatching(/^\(404, .*\(400, .*\(400, /),
      expect.stringContaining('more than 256 KiB'),
      expect.stringContaining('There is no tool "shop.order"'),
      expect.stringContaining("shop__price needs a person's approval"),
    ])
    expect(byCode.map(({ type }) => type)).toEqual(['tool_call', 'tool_result'])
    expect(mcp.calls()).toHaveLength(0)
  })

  it('gets its result without the run’s secrets', async () => {
    mcp.onCall = ({ headers }) => `You sent ${headers.authorization}.`
    const { outputs, byCode } = await run([python('import errand; print(errand.mcp.shop.price(id=1))')])
    expect(outputs).toEqual(['You sent Bearer [secret].'])
    expect(JSON.stringify(byCode)).not.toContain(TOKEN)
  })

  it('runs beside five others; more wait', async () => {
    let running = 0
    let most = 0
    mcp.onCall = async () => {
      most = Math.max(most, ++running)
      // Time for a seventh call to arrive, which it must not.
      await delay(200)
      running--
      return 'ok'
    }
    const code = `
import errand
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(40) as pool:
    print(len(list(pool.map(lambda i: errand.mcp.shop.price(id=i), range(40)))))`
    const all = 'Promise.all(Array.from({ length: 40 }, (_, id) => errand.mcp.shop.price({ id })))'
    const { outputs } = await run([python(code), javascript(`(await ${all}).length`)])
    expect(outputs).toEqual(['40', '40'])
    expect(most).toBeLessThanOrEqual(6)
    expect(most).toBeGreaterThan(1)
  })
})

describe('without MCP servers', () => {
  it('there is no module errand, and the tool does not mention one', async () => {
    const { id, marker } = await begin([python('import errand'), javascript('console.log(typeof errand)')], { mcp: [] })
    const { outputs } = await finish(id)
    expect(outputs).toEqual([expect.stringContaining('ModuleNotFoundError'), 'undefined'])
    expect(JSON.stringify(requestsOf(marker)[0]!.tools)).not.toContain('errand.mcp')
  })
})

it('a follow-on interaction and the next turn have no trace of the calls', async () => {
  const first = await begin([python('import errand; errand.mcp.shop.price(id=41)["tool"]'), python('2 + 2')])
  const { outputs } = await finish(first.id)
  expect(outputs).toEqual(["'price'", '4'])
  const second = await begin([], { previousInteractionId: first.id })
  await finish(second.id)
  const request = requestsOf(second.marker).at(-1)!
  const results = request.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  expect(results).toEqual(["'price'", '4'])
  expect(JSON.stringify(request.tools)).toContain('errand.mcp')
})

describe('after kill -9 in the middle of a call by code', () => {
  const code = (tool: string) => `
import errand
try:
    print(errand.mcp.shop.${tool}(id=1)['tool'])
except errand.ToolError as error:
    print(error)
print(errand.mcp.shop.price(id=2)['tool'])`

  it.each([
    ['a tool that only reads is called again', 'price', 'price\nprice'],
    [
      'any other call is not made twice, and the code gets an error',
      'order',
      'connection lost; the outcome is unknown\nprice',
    ],
  ])('%s', async (_title, tool, printed) => {
    mcp.onCall = () => new Promise(() => {})
    const { id } = await begin([python(code(tool))])
    await until(() => mcp.calls().length === 1)
    await server.stop('SIGKILL')
    server = await start(server.key)
    const { outputs, byCode } = await finish(id)
    expect(outputs).toEqual([printed])
    const named = (name: string) => mcp.calls().filter(({ params }) => params.name === name).length
    expect(named('order')).toBe(tool === 'order' ? 1 : 0)
    expect(byCode.filter(({ type }) => type === 'tool_call')).toHaveLength(byCode.length / 2)
    expect(byCode.filter(({ output }) => output?.includes('its outcome is unknown'))).toHaveLength(1)
  })
})
