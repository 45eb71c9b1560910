/**
 * Checks runs with too many tools to declare each: the model finds MCP tools with `find_tools` and calls them with `call_tool`.
 * Events, trace and approvals show the tools themselves.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ChatRequest, type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, type McpTool, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type Server, startServer } from '../support/server.ts'
import { outputsOf } from '../support/tool-run.ts'
import { checkEnded, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const VERBS = ['list', 'get', 'create', 'update', 'delete', 'search', 'export', 'archive']
const THINGS = [
  ...['invoice', 'customer', 'order', 'product', 'warehouse', 'shipment', 'refund', 'coupon', 'campaign', 'report'],
  ...['ticket', 'comment', 'label', 'milestone', 'branch', 'commit', 'release', 'pipeline', 'runner', 'secret_name'],
  ...['employee', 'vacation', 'payslip', 'contract', 'candidate', 'interview', 'office', 'room', 'booking', 'device'],
  ...['server', 'disk', 'snapshot', 'network', 'firewall', 'domain', 'certificate', 'alert', 'dashboard', 'log_entry'],
  ...['survey', 'question', 'answer', 'lecture', 'course', 'student', 'grade', 'exam', 'library_book', 'loan'],
]

/** 400 tools with schemas of the usual size: about 60,000 tokens together. */
const TOOLS: readonly McpTool[] = THINGS.flatMap((thing) =>
  VERBS.map((verb) => ({
    name: `${verb}_${thing}`,
    description: `${verb[0]!.toUpperCase()}${verb.slice(1)} a ${thing.replace('_', ' ')} of the company. ${'The result has all fields. '.repeat(8)}`,
    inputSchema: {
      type: 'object',
      properties: {
        [`${thing}_id`]: { type: 'string', description: `The identifier of the ${thing}.` },
        fields: { type: 'array', items: { type: 'string' }, description: 'The fields to return.' },
      },
      required: [`${thing}_id`],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: verb !== 'delete' },
  })),
)

let provider: FakeProvider
let mcp: FakeMcp
let dataDir: string
let server: Server
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = TOOLS
  dataDir = await mkdtemp(join(tmpdir(), 'errand-many-tools-'))
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([mcp?.close(), provider?.close()])
  await rm(dataDir, { recursive: true, force: true })
})
const echo = ({ params }: { params: object }) => JSON.stringify(params)
afterEach(() => {
  mcp.tools = TOOLS
  mcp.onCall = echo
  mcp.requests.length = 0
})

function start(key?: string): Promise<Server> {
  const config = { limits: ROOMY, egress: { allowPrivate: [mcp.address] } }
  mcp.onCall = echo
  return startServer({ provider, dataDir, config, env: { ERRAND_LEASE_S: '1' }, ...(key && { key }) })
}

const find = (query: string, more: object = {}) => ({ name: 'find_tools', args: { query, ...more } })
const call = (name: string, args: unknown) => ({ name: 'call_tool', args: { name, args } })

let runs = 0
/** Starts a run whose model makes these calls, one in each turn, and then answers `Done.`. */
async function begin(calls: readonly { name: string; args: unknown }[], fields: object = {}) {
  const marker = `[many tools ${++runs}]`
  provider.when(marker, ...calls.map((each) => ({ toolCalls: [each] })), { text: 'Done.' })
  const { status, body } = await server.post(PATH, {
    instruction: marker,
    tools: ['code_execution'],
    mcp: [{ name: 'erp', url: mcp.url }],
    background: true,
    ...fields,
  })
  expect(status).toBe(200)
  return { id: body.interactionId as string, marker }
}

async function finish(id: string) {
  await ended(server, id)
  const { interaction, events } = await checkEnded(server, id)
  expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  return { interaction, events, outputs: outputsOf(interaction.executionTrace) }
}

async function run(calls: readonly { name: string; args: unknown }[], fields: object = {}) {
  return finish((await begin(calls, fields)).id)
}

const requestsOf = (marker: string): ChatRequest[] =>
  provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker)).map(({ body }) => body)
const offeredIn = ({ tools = [] }: ChatRequest) => tools.map((tool) => tool.function.name)

describe('with 400 tools', () => {
  it('the first request has fewer than 8,000 tokens, and names the servers with their number of tools', async () => {
    const { id, marker } = await begin([])
    await finish(id)
    const [request] = requestsOf(marker)
    expect(JSON.stringify(TOOLS).length / 4).toBeGreaterThan(40_000)
    expect(JSON.stringify(request).length / 4).toBeLessThan(8_000)
    expect(offeredIn(request!)).toEqual(['code_execution', 'job', 'find_tools', 'call_tool'])
    expect(JSON.stringify(request!.messages[0])).toContain('erp (400 tools)')
  })

  it('find_tools returns the best matches with their schemas', async () => {
    const { outputs } = await run([
      find('delete an invoice', { limit: 2 }),
      find('payslipId'),
      find('certificates'),
      find('zebra'),
      find('', {}),
    ])
    const [best, parameter, plural, none, wrong] = outputs
    const lines = best!.split('\n')
    expect(lines[0]).toMatch(/^\d+ of 400 tools match\. The best 2:$/)
    expect(JSON.parse(lines[1]!)).toMatchObject({
      name: 'erp__delete_invoice',
      description: expect.stringContaining('Delete a invoice'),
      parameters: { required: ['invoice_id'] },
    })
    expect(lines).toHaveLength(3)
    expect(parameter!.split('\n').slice(1)).toHaveLength(8)
    expect(parameter!.match(/"name":"erp__\w+_payslip"/g)).toHaveLength(8)
    expect(plural).toContain('"name":"erp__get_certificate"')
    expect(none).toMatch(/^None of the 400 tools matches\..* Servers: erp \(400 tools\)\.$/)
    expect(wrong).toContain('`query` must not be empty')
  })

  it('call_tool runs the tool; events and trace show its own name and arguments', async () => {
    const { id, marker } = await begin([find('get customer'), call('erp__get_customer', { customer_id: 'c7' })])
    const { interaction, outputs } = await finish(id)
    const [, , shown] = interaction.executionTrace
    expect(shown).toMatchObject({ type: 'tool_call', name: 'erp__get_customer', args: { customer_id: 'c7' } })
    expect(JSON.parse(outputs[1]!)).toMatchObject({ name: 'get_customer', arguments: { customer_id: 'c7' } })
    const last = requestsOf(marker).at(-1)!
    const asked = last.messages.flatMap(({ tool_calls = [] }) => tool_calls.map((each) => each.function.name))
    expect(asked).toEqual(['find_tools', 'call_tool'])
  })

  it('accepts a tool that is called by its own name, and arguments as JSON text', async () => {
    const { interaction, outputs } = await run([
      { name: 'erp__get_order', args: { order_id: 'o1' } },
      call('erp__get_order', '{"order_id":"o2"}'),
    ])
    expect(outputs).toEqual([expect.stringContaining('"o1"'), expect.stringContaining('"o2"')])
    expect(interaction.executionTrace.map(({ name }: { name?: string }) => name)).toEqual([
      ...['erp__get_order', undefined, 'erp__get_order', undefined],
    ])
  })

  it('an error about the arguments has the schema, other errors do not', async () => {
    mcp.onCall = ({ params }) => ({
      isError: true,
      content: [{ type: 'text', text: params.name === 'get_room' ? 'no such room' : 'it is broken' }],
    })
    const { outputs } = await run([
      call('erp__get_room', {}),
      call('erp__get_room', { room_id: '1', floor: 2 }),
      call('erp__get_office', { office_id: '1' }),
      call('erp__get_office', [1]),
    ])
    const schema = (thing: string) => `"required":["${thing}_id"]`
    expect(outputs[0]).toContain(schema('room'))
    expect(outputs[1]).toContain(schema('room'))
    expect(outputs[2]).not.toContain('JSON Schema')
    expect(outputs[3]).toMatch(/not a JSON object/)
    expect(outputs[3]).toContain(schema('office'))
  })

  it('an unknown name is answered with the nearest names', async () => {
    const { outputs } = await run([
      call('erp__fetch_vacation', {}),
      { name: 'vacations', args: {} },
      { name: 'call_tool', args: {} },
      call('call_tool', { name: 'erp__get_order', args: {} }),
    ])
    expect(outputs[0]).toMatch(/^There is no tool "erp__fetch_vacation"\. The nearest are: erp__\w+_vacation, /)
    expect(outputs[1]).toMatch(/^There is no tool "vacations"\. The nearest are: erp__\w+_vacation, /)
    expect(outputs[2]).toContain('`name` must be the name of a tool')
    expect(outputs[3]).toContain('There is no tool "call_tool"')
    expect(mcp.calls()).toHaveLength(0)
  })

  it('a call through call_tool waits for approval under its own name', async () => {
    const { id } = await begin([call('erp__delete_disk', { disk_id: 'd' }), call('erp__get_disk', { disk_id: 'd' })], {
      mcp: [{ name: 'erp', url: mcp.url, requireApproval: ['delete_disk'] }],
    })
    const pending = await until(async () => (await server.get(`${PATH}/${id}`)).body.pendingApprovals)
    expect(pending).toEqual([{ step: 1, name: 'erp__delete_disk', args: { disk_id: 'd' } }])
    expect(mcp.calls()).toHaveLength(0)
    await server.post(`${PATH}/${id}:approve`)
    const { outputs } = await finish(id)
    expect(outputs).toEqual([expect.stringContaining('delete_disk'), expect.stringContaining('get_disk')])
  })

  it('tools that the server adds during the run are found, and the requests keep their tools', async () => {
    mcp.onCall = ({ id }, response) => {
      mcp.tools = [...TOOLS, { name: 'paint_bikeshed' }]
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })}\n\n`)
      return undefined
    }
    mcp.intercept = (request, response) => {
      if (request.method !== 'initialize') return false
      const capabilities = { tools: { listChanged: true } }
      const result = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'x', version: '1' } }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: request.id, result }))
      return true
    }
    const { id, marker } = await begin([call('erp__get_exam', { exam_id: '1' }), find('paint the bikeshed')])
    const { outputs } = await finish(id)
    mcp.intercept = () => false
    expect(outputs[1]).toContain('"name":"erp__paint_bikeshed"')
    const [first, ...others] = requestsOf(marker).map(({ tools, messages: [system] }) => ({ tools, system }))
    for (const other of others) expect(other).toEqual(first)
  })
})

describe('after kill -9 in the middle of a call through call_tool', () => {
  it.each([
    ['a tool that only reads is called again', 'erp__get_loan', '"loan_id":"l"'],
    ['the outcome of any other tool is unknown', 'erp__delete_loan', 'its outcome is unknown'],
  ])('%s', async (_title, name, expected) => {
    mcp.onCall = () => new Promise(() => {})
    const { id, marker } = await begin([find('loan'), call(name, { loan_id: 'l' })])
    await until(() => mcp.calls().length === 1)
    const before = requestsOf(marker)
    await server.stop('SIGKILL')
    server = await start(server.key)
    const { interaction, outputs } = await finish(id)
    expect(outputs[1]).toContain(expected)
    expect(interaction.executionTrace.filter(({ type }: { type: string }) => type === 'tool_call')).toHaveLength(2)
    const after = requestsOf(marker).at(-1)!
    expect(after.messages.slice(0, before.at(-1)!.messages.length)).toEqual(before.at(-1)!.messages)
    expect(after.tools).toEqual(before.at(-1)!.tools)
  })
})

it('a follow-on interaction sends the conversation with the same tools', async () => {
  const first = await begin([find('survey'), call('erp__get_survey', { survey_id: 's' })])
  await finish(first.id)
  const second = await begin([call('erp__list_survey', { survey_id: 's' })], { previousInteractionId: first.id })
  const { outputs } = await finish(second.id)
  expect(outputs).toEqual([expect.stringContaining('list_survey')])
  const before = requestsOf(first.marker).find((request) => request.messages.at(-1)!.role === 'tool')!
  const after = requestsOf(second.marker).at(-1)!
  expect(after.tools).toEqual(before.tools)
  expect(after.messages.slice(0, before.messages.length)).toEqual(before.messages)
})

describe('the limit', () => {
  const offered = async (tools: readonly McpTool[]) => {
    mcp.tools = tools
    const { id, marker } = await begin([], { tools: [] })
    await finish(id)
    return offeredIn(requestsOf(marker)[0]!)
  }

  it('is 40 tools', async () => {
    const small = Array.from({ length: 41 }, (_, i) => ({ name: `t${i}` }))
    expect(await offered(small.slice(1))).toHaveLength(40)
    expect(await offered(small)).toEqual(['find_tools', 'call_tool'])
  })

  it('is 12,000 tokens of definitions if the context window is unknown', async () => {
    const large = Array.from({ length: 13 }, (_, i) => ({ name: `t${i}`, description: 'x'.repeat(4_000) }))
    expect(await offered(large.slice(2))).toHaveLength(11)
    expect(await offered(large)).toEqual(['find_tools', 'call_tool'])
  })
})
