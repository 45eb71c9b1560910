/**
 * Calls of one reply that run at the same time: which do, that results go to the model in call order, and that a crash in
 * their middle loses and repeats nothing. Calls that wait for each other prove concurrency: in sequence they would never end.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type Server, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { checkEnded, createGate, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const READS = { readOnlyHint: true }

const config = (more: object = {}) => ({ egress: { allowPrivate: [mcp.address] }, limits: ROOMY, ...more })

let provider: FakeProvider
let mcp: FakeMcp
let server: Server
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = [{ name: 'look', annotations: READS }, { name: 'change' }, { name: 'says_nothing', annotations: {} }]
  server = await startServer({ provider, config: config(), env: { ERRAND_LEASE_S: '1' } })
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([provider?.close(), mcp?.close()])
})
afterEach(() => {
  mcp.requests.length = 0
  answer = async (name) => name
  inFlight = most = 0
})

/** The answer of the MCP server to a call with the argument `name`. */
let answer: (name: string) => Promise<string>
let inFlight = 0
let most = 0
beforeAll(() => {
  answer = async (name) => name
  mcp.onCall = async ({ params }) => {
    most = Math.max(most, ++inFlight)
    try {
      return await answer(params.arguments.name)
    } finally {
      inFlight--
    }
  }
})

const call = (tool: string, name: string, id?: string) => ({ name: `s__${tool}`, args: { name }, ...(id && { id }) })
const look = (name: string, id?: string) => call('look', name, id)
const change = (name: string) => call('change', name)
const code = (language: string, text: string) => ({ name: 'code_execution', args: { language, code: text } })
const called = () => mcp.calls().map(({ params }) => params.arguments.name)

let runs = 0
/** Starts a run whose model makes these calls in its first reply. */
async function start(toolCalls: readonly { name: string; args: unknown; id?: string }[], rest: object = {}) {
  const marker = `[parallel ${++runs}]`
  provider.when(marker, { toolCalls }, { text: 'Done.' })
  const mcpServers = [{ name: 's', url: mcp.url }]
  const body = { instruction: marker, background: true, tools: ['code_execution'], mcp: mcpServers, ...rest }
  const { status, text, body: started } = await server.post(PATH, body)
  expect(status, text).toBe(200)
  return { id: started.id as string, marker }
}

/** The contents of the results in the last request of a run. */
function results(marker: string): unknown[] {
  const asked = provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker))
  return asked.at(-1)!.body.messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))
}

async function crash(): Promise<void> {
  await restart('SIGKILL')
}

async function restart(signal: NodeJS.Signals, env: Record<string, string> = {}, more: object = {}): Promise<void> {
  const { dataDir, key } = server
  await server.stop(signal)
  server = await startServer({ provider, dataDir, key, config: config(more), env: { ERRAND_LEASE_S: '1', ...env } })
}

const named = (events: readonly WireEvent[], name: string) => events.filter(({ event }) => event === name)

describe('calls of one reply', () => {
  it('that only read wait for each other; their results go to the model in call order', async () => {
    const both = createGate()
    const second = createGate()
    answer = async (name) => {
      if (inFlight === 2) both.open()
      await both.opened
      if (name === 'first') await second.opened
      else queueMicrotask(() => void until(() => resultsStored(id)).then(second.open))
      return name
    }
    const { id, marker } = await start([look('first'), look('second')])
    const resultsStored = async (of: string) => {
      const { body } = await server.get(`${PATH}/${of}`)
      return body.executionTrace.some(({ type }: { type: string }) => type === 'tool_result')
    }
    await ended(server, id)
    const { interaction, events } = await checkEnded(server, id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.', usage: { tool_calls: 2 } })
    expect(results(marker)).toEqual(['first', 'second'])
    const [one, two] = named(events, 'tool_call').map(({ data }) => data)
    expect([one.step, two.step, one.batch, two.batch]).toEqual([1, 2, 1, 1])
    // The second call returned first.
    const returned = named(events, 'tool_result').map(({ data }) => [data.callId, data.output])
    expect(returned).toEqual([
      [two.callId, 'second'],
      [one.callId, 'first'],
    ])
    expect(interaction.executionTrace.map(({ callId }: { callId: string }) => callId)).toEqual([
      ...[one.callId, two.callId],
      ...[two.callId, one.callId],
    ])
  })

  it('run six at a time', async () => {
    const six = createGate()
    answer = async (name) => {
      if (inFlight === 6) six.open()
      await six.opened
      return name
    }
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    const { id, marker } = await start(names.map((name) => look(name)))
    await ended(server, id)
    await checkEnded(server, id)
    expect(most).toBe(6)
    expect(results(marker)).toEqual(names)
  })

  it('in two languages share one new sandbox and wait for each other there', async () => {
    const wait = (file: string) => `while not os.path.exists('${file}'): time.sleep(0.01)`
    const python = `import os, time\nopen('python', 'w')\n${wait('bash')}\nprint('python saw bash')`
    const bash = 'touch bash; while [ ! -e python ]; do sleep 0.01; done; echo bash saw python'
    const { id, marker } = await start([code('python', python), code('bash', bash)])
    await ended(server, id)
    const { events } = await checkEnded(server, id)
    expect(results(marker)).toEqual(['python saw bash', 'bash saw python'])
    expect(named(events, 'stage').filter(({ data }) => data.stage === 'provisioning')).toHaveLength(1)
    const [one, two] = named(events, 'tool_call').map(({ data }) => data.step)
    const printed = (step: number) => named(events, 'tool_output').filter(({ data }) => data.step === step)
    expect(printed(one).map(({ data }) => data.text)).toEqual(['python saw bash\n'])
    expect(printed(two).map(({ data }) => data.text)).toEqual(['bash saw python\n'])
  })

  it('in one language, or that may change something, run one after another in order', async () => {
    const steps = [
      ...[code('python', 'x = 1\nprint(x)'), code('python', 'x += 1\nprint(x)')],
      ...[change('a'), call('says_nothing', 'b'), look('c'), change('d')],
    ]
    const { id, marker } = await start(steps)
    await ended(server, id)
    const { events } = await checkEnded(server, id)
    expect(results(marker)).toEqual(['1', '2', 'a', 'b', 'c', 'd'])
    expect(called()).toEqual(['a', 'b', 'c', 'd'])
    expect(most).toBe(1)
    // All intents are stored before the first call starts.
    const order = events.map(({ event }) => event).filter((name) => name === 'tool_call' || name === 'tool_result')
    expect(order).toEqual([...Array(6).fill('tool_call'), ...Array(6).fill('tool_result')])
  })

  it('that fail, are unknown or have bad arguments do not disturb the others', async () => {
    const bad = { name: 'code_execution', args: '{"code": ' }
    const { id, marker } = await start([{ name: 'nothing', args: {} }, look('a'), bad, change('b')])
    await ended(server, id)
    await checkEnded(server, id)
    const unknown = expect.stringContaining('There is no tool "nothing"')
    expect(results(marker)).toEqual([unknown, 'a', expect.stringContaining('not a JSON object'), 'b'])
  })

  it('all end when the run is canceled', async () => {
    const never = createGate()
    answer = () => never.opened.then(() => '')
    const { id } = await start([look('a'), look('b'), change('c')])
    await until(() => inFlight === 2)
    expect((await server.post(`${PATH}/${id}:cancel`)).body.status).toBe('cancelled')
    const { interaction } = await checkEnded(server, id)
    expect(interaction.executionTrace).toMatchObject([1, 2, 3].map((step) => ({ step, type: 'tool_call' })))
    expect(called().sort()).toEqual(['a', 'b'])
    never.open()
  })
})

describe('a crash in the middle of a reply’s calls', () => {
  it('keeps finished results, repeats reads, and makes the calls that had not started once', async () => {
    const crashed = createGate()
    answer = async (name) => {
      if (name === 'slow') await crashed.opened
      return name
    }
    const { id, marker } = await start([look('slow'), look('fast'), change('later'), change('last')])
    await until(async () => (await server.get(`${PATH}/${id}`)).body.executionTrace.length === 5)
    await crash()
    crashed.open()
    await ended(server, id)
    await checkEnded(server, id)
    expect(results(marker)).toEqual(['slow', 'fast', 'later', 'last'])
    expect(called()).toEqual(['slow', 'fast', 'slow', 'later', 'last'])
  })

  it('reports a change that may have happened as unknown, and makes those behind it', async () => {
    const crashed = createGate()
    answer = async (name) => {
      if (name === 'first') await crashed.opened
      return name
    }
    const { id, marker } = await start([change('first'), change('second')])
    await until(() => inFlight === 1)
    await crash()
    crashed.open()
    await ended(server, id)
    await checkEnded(server, id)
    expect(results(marker)).toEqual([expect.stringContaining('outcome is unknown'), 'second'])
    expect(called()).toEqual(['first', 'second'])
  })

  it('at any point loses and repeats nothing, and sends the same request again', { timeout: 300_000 }, async () => {
    const points = [
      ...['before-write:3', 'after-write:3', 'tool-begins:3', 'tool-speaks:2', 'tool-ended:3'],
      ...['after-write:5', 'tool-begins:5', 'tool-ended:5'],
    ]
    const python = code('python', "open('runs', 'a').write('p')\nprint('ran')")
    const bash = code('bash', 'printf b >> runs; echo ran')
    for (const point of points) {
      mcp.requests.length = 0
      await restart('SIGTERM', { ERRAND_CRASH_AT: point })
      const crashed = new Promise((resolve) => server.process.once('exit', resolve))
      const calls = [look('a'), look('b'), python, bash, change('c'), look('d'), code('bash', 'wc -c < runs')]
      const { id, marker } = await start(calls)
      await crashed
      await restart('SIGKILL')
      await ended(server, id)
      await checkEnded(server, id)
      const [a, b, first, second, c, d, count] = results(marker).map(String)
      expect([a, b, d], point).toEqual(['a', 'b', 'd'])
      for (const result of [first, second]) expect(result, point).toMatch(/^ran$|outcome is unknown/)
      // A step is only unknown if its sandbox was lost.
      if (first === 'ran' && second === 'ran') expect(count, point).toBe('2')
      expect(c, point).toMatch(/^c$|outcome is unknown/)
      expect(called().filter((name) => name === 'c').length, point).toBeLessThanOrEqual(1)
      const bodies = provider.requests.map(({ body }) => JSON.stringify(body)).filter((body) => body.includes(marker))
      expect(new Set(bodies).size, point).toBe(2)
    }
  })

  it('by a shutdown leaves steps in two languages running, and gets both results', async () => {
    await restart('SIGTERM', {}, { drainS: 0.2 })
    const python = 'import time\nfor i in range(40):\n    print("tick", i, flush=True); time.sleep(0.1)'
    const bash = 'for i in $(seq 0 39); do echo tick $i; sleep 0.1; done'
    const { id, marker } = await start([code('python', python), code('bash', bash)])
    const stream = await server.stream(`${PATH}/${id}:stream`)
    const printed = new Set<number>()
    for await (const { event, data } of stream.events) {
      if (event === 'tool_output' && printed.add(data.step).size === 2) break
    }
    stream.drop()
    await restart('SIGTERM')
    await ended(server, id)
    await checkEnded(server, id)
    const ticks = Array.from({ length: 40 }, (_, i) => `tick ${i}`).join('\n')
    expect(results(marker)).toEqual([ticks, ticks])
  })

  it('pairs results with calls that have the same id', async () => {
    const crashed = createGate()
    answer = async (name) => {
      if (name === 'one') await crashed.opened
      return name
    }
    const { id, marker } = await start([look('one', 'same'), look('two', 'same'), look('three', 'same')])
    await until(async () => (await server.get(`${PATH}/${id}`)).body.executionTrace.length === 5)
    await crash()
    crashed.open()
    await ended(server, id)
    const { events } = await checkEnded(server, id)
    expect(results(marker)).toEqual(['one', 'two', 'three'])
    expect(new Set(named(events, 'tool_call').map(({ data }) => data.callId)).size).toBe(3)
  })
})

describe('approvals of one reply', () => {
  const asking = () => ({ mcp: [{ name: 's', url: mcp.url, requireApproval: ['change'] }] })
  const waiting = async (id: string, count: number) => {
    const pending = async () => (await server.get(`${PATH}/${id}`)).body.pendingApprovals ?? []
    await until(async () => (await pending()).length === count)
    return pending()
  }

  it('are requested together, decided in any order, and no call runs before', async () => {
    const { id, marker } = await start([look('a'), change('b'), change('c'), change('d')], asking())
    expect((await waiting(id, 3)).map(({ step }: { step: number }) => step)).toEqual([2, 3, 4])
    await server.post(`${PATH}/${id}:approve`, { step: 4 })
    expect((await waiting(id, 2)).map(({ step }: { step: number }) => step)).toEqual([2, 3])
    await server.post(`${PATH}/${id}:approve`, { step: 2, approve: false, reason: 'Not this one.' })
    await waiting(id, 1)
    expect(called()).toEqual([])
    await server.post(`${PATH}/${id}:approve`)
    await ended(server, id)
    const { events } = await checkEnded(server, id)
    expect(results(marker)).toEqual(['a', expect.stringContaining('Not this one.'), 'c', 'd'])
    expect(called()).toEqual(['a', 'c', 'd'])
    const order = events.map(({ event }) => event).filter((name) => name.startsWith('approval'))
    expect(order).toEqual([...Array(3).fill('approval_required'), ...Array(3).fill('approval_decided')])
    const stages = named(events, 'stage').map(({ data }) => data.stage)
    expect(stages.filter((stage) => stage === 'requires_action')).toHaveLength(1)
  })

  it('are kept when the server restarts between two decisions, and are not requested again', async () => {
    const { id, marker } = await start([change('a'), change('b'), look('c')], asking())
    await waiting(id, 2)
    const stream = await server.stream(`${PATH}/${id}:stream`)
    await server.post(`${PATH}/${id}:approve`, { step: 2 })
    for await (const { event } of stream.events) if (event === 'approval_decided') break
    await crash()
    expect(await waiting(id, 1)).toMatchObject([{ step: 1 }])
    await server.post(`${PATH}/${id}:approve`, { step: 1 })
    await ended(server, id)
    const { events } = await checkEnded(server, id)
    expect(results(marker)).toEqual(['a', 'b', 'c'])
    expect(called()).toEqual(['a', 'b', 'c'])
    expect(named(events, 'approval_required')).toHaveLength(2)
    expect(named(events, 'approval_decided').map(({ data }) => data.step)).toEqual([2, 1])
  })
})
