/**
 * Requests to one node about a run that another node executes: streaming, cancelling, approving, and resuming it after
 * its worker died. Nodes are processes with separate data directories, so a worker can't access another's sandboxes.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { checkEnded } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { onPostgres } from '../store/backends.ts'
import { processesWith } from '../support/processes.ts'
import type { Server } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { type Nodes, openNodes } from './start-nodes.ts'

const PATH = '/v1beta/interactions'

onPostgres('across nodes', (cluster) => {
  let provider: FakeProvider
  let mcp: FakeMcp
  let nodes: Nodes
  let a: Server
  let b: Server
  beforeAll(async () => {
    ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
    nodes = openNodes(provider, await cluster().createDatabase(), { egress: { allowPrivate: [mcp.address] } })
    a = await nodes.start('api')
    b = await nodes.start('api')
  })
  afterAll(async () => {
    await nodes?.close()
    await Promise.all([provider?.close(), mcp?.close()])
  })
  afterEach(() => nodes.stopWorkers())

  const code = (text: string, language = 'python') => ({
    toolCalls: [{ name: 'code_execution', args: { language, code: text } }],
  })
  /** A step that never ends by itself. Tests find its process by the marker. */
  const endless = (marker: string) => code(`exec -a ${marker} sleep 600`, 'bash')

  async function begin(instruction: string, rest: object = {}): Promise<string> {
    const body = { instruction, background: true, tools: ['code_execution'], ...rest }
    const answer = await a.post(PATH, body)
    expect(answer.status, answer.text).toBe(200)
    return answer.body.id
  }

  const finished = (id: string, at: Server = a) => checkEnded(at, id)
  const running = (marker: string) => expect.poll(() => processesWith(marker), { timeout: 30_000 }).not.toEqual([])
  const gone = (marker: string) => expect.poll(() => processesWith(marker), { timeout: 30_000 }).toEqual([])

  /** Resolves when the stream contains an event for which `look` returns true. */
  async function shown(at: Server, id: string, look: (event: WireEvent) => boolean): Promise<void> {
    const stream = await at.stream(`${PATH}/${id}:stream`)
    for await (const event of stream.events) if (look(event)) break
    stream.drop()
  }

  test('streams a run from every node, and resumes the stream on another node after any event', async () => {
    await nodes.start('worker')
    const { promise: hold, resolve: release } = Promise.withResolvers<void>()
    const words = Array.from({ length: 40 }, (_, i) => `word ${i} `)
    provider.when('[stream]', { text: words, hold, holdAfter: 20 })
    const first = await a.stream(`${PATH}:stream`, { instruction: '[stream]' })
    const id = first.headers.get('x-interaction-id')!
    // Both nodes show the output so far while the run continues.
    await shown(b, id, ({ event }) => event === 'partial_output')
    release()
    const here = await first.all()
    const there = await (await b.stream(`${PATH}/${id}:stream`)).all()
    expect(there).toEqual(here)
    for (const { id: seen } of here) {
      const rest = await (await b.stream(`${PATH}/${id}:stream?lastEventId=${seen}`)).all()
      expect(rest).toEqual(here.slice(Number(seen)))
    }
    await finished(id, b)
  })

  test('has stopped the run’s processes on its worker when any node answers a cancel request', async () => {
    await nodes.start('worker')
    provider.when('[cancel]', endless('cancel-me'))
    const id = await begin('[cancel]')
    await running('cancel-me')
    const answers = await Promise.all([a, b, b].map((node) => node.post(`${PATH}/${id}:cancel`)))
    expect(await processesWith('cancel-me')).toEqual([])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await finished(id, b)).interaction.status).toBe('cancelled')
  })

  test('cancels a run whose worker died; a restarted node stops the leftover processes', async () => {
    const worker = await nodes.start('worker')
    provider.when('[orphan]', endless('orphan-step'))
    const id = await begin('[orphan]')
    await running('orphan-step')
    await worker.stop('SIGKILL')
    expect((await a.post(`${PATH}/${id}:cancel`)).status).toBe(200)
    expect((await finished(id)).interaction.status).toBe('cancelled')
    await nodes.start('worker', { dataDir: worker.dataDir })
    await gone('orphan-step')
  })

  test('applies a revoked key and a changed setting on all nodes', async () => {
    const made = await a.errand(['keys', 'create', '--name', 'short-lived'])
    const header = { 'x-svc-api-key': made.stdout.trim() }
    expect((await b.get(PATH, header)).status).toBe(200)
    expect((await b.errand(['settings', 'set', 'experimental.managedAgents', 'off'])).code).toBe(0)
    for (const node of [a, b]) expect((await node.get(PATH, header)).status).toBe(403)
    expect((await b.errand(['settings', 'set', 'experimental.managedAgents', 'on'])).code).toBe(0)
    expect((await a.errand(['keys', 'revoke', made.stderr.split(' ')[0]!])).code).toBe(0)
    for (const node of [b, a]) expect((await node.get(PATH, header)).status).toBe(401)
  })

  test('continues a run after another node received the approval', async () => {
    mcp.tools = [{ name: 'remove' }]
    await nodes.start('worker')
    provider.when('[approve]', { toolCalls: [{ name: 'files__remove', args: {} }] }, { text: 'Removed.' })
    const id = await begin('[approve]', { mcp: [{ name: 'files', url: mcp.url, requireApproval: true }] })
    const stage = async () => (await a.get(`${PATH}/${id}`)).body.stage
    await expect.poll(stage, { timeout: 30_000 }).toBe('requires_action')
    expect(mcp.calls()).toEqual([])
    expect((await b.post(`${PATH}/${id}:approve`)).status).toBe(200)
    expect((await finished(id)).interaction).toMatchObject({ status: 'completed', output: 'Removed.' })
    expect(mcp.calls()).toHaveLength(1)
  })

  test('continues calls of one reply that were approved on different nodes, also after their worker died', async () => {
    mcp.tools = [{ name: 'look', annotations: { readOnlyHint: true } }, { name: 'remove' }]
    mcp.onCall = ({ params }) => params.name
    const before = mcp.calls().length
    const first = await nodes.start('worker')
    const calls = ['look', 'remove', 'remove'].map((name) => ({ name: `files__${name}`, args: {} }))
    provider.when('[approve two]', { toolCalls: calls }, { text: 'Removed.' })
    const id = await begin('[approve two]', {
      mcp: [{ name: 'files', url: mcp.url, requireApproval: ['remove'] }],
    })
    const pending = async (at: Server) =>
      (await at.get(`${PATH}/${id}`)).body.pendingApprovals?.map(({ step }: { step: number }) => step)
    await expect.poll(() => pending(b), { timeout: 30_000 }).toEqual([2, 3])
    expect((await b.post(`${PATH}/${id}:approve`, { step: 3 })).status).toBe(200)
    expect(await pending(a)).toEqual([2])
    await Promise.all([first.stop('SIGKILL'), nodes.start('worker')])
    expect((await a.post(`${PATH}/${id}:approve`, { step: 2, approve: false })).status).toBe(200)
    const { interaction, events } = await finished(id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Removed.' })
    expect(events.filter(({ event }) => event === 'approval_required')).toHaveLength(2)
    expect(events.filter(({ event }) => event === 'approval_decided')).toHaveLength(2)
    const made = mcp.calls().slice(before)
    expect(made.map(({ params }) => params.name)).toEqual(['look', 'remove'])
  })

  test('resumes a run of a killed worker on another one, with its input files but a new sandbox, and reports the lost step', async () => {
    const first = await nodes.start('worker')
    provider.when(
      '[take over]',
      code('open("made.txt", "w").write("x"); print(open("given.txt").read())'),
      endless('killed-step'),
      code('import os; print(sorted(os.listdir(".")), open("given.txt").read())'),
      { text: 'Done.' },
    )
    const id = await begin('[take over]', { files: [{ name: 'given.txt', content: 'given' }] })
    await running('killed-step')
    await Promise.all([first.stop('SIGKILL'), nodes.start('worker')])
    const { interaction } = await finished(id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
    const results = interaction.executionTrace.filter(({ type }: { type: string }) => type === 'tool_result')
    expect(results.map(({ output }: { output: string }) => output)).toEqual([
      expect.stringContaining('given'),
      expect.stringContaining('unknown'),
      expect.stringMatching(/^\['given\.txt'.*\] given/),
    ])
    expect(results[2].output).not.toContain('made.txt')
  })

  test('a worker that was frozen past its lease writes nothing more, and ends its own sandbox', async () => {
    const frozen = await nodes.start('worker')
    provider.when('[frozen]', endless('frozen-step'), { text: 'Done.' })
    const id = await begin('[frozen]')
    await running('frozen-step')
    frozen.process.kill('SIGSTOP')
    await nodes.start('worker')
    const { interaction, events } = await finished(id)
    expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
    // The sandbox host is a separate process, which keeps running, and no other worker on that node could end this
    // step.
    expect(await processesWith('frozen-step')).not.toEqual([])
    frozen.process.kill('SIGCONT')
    await gone('frozen-step')
    expect((await finished(id)).events).toEqual(events)
  })

  test('a worker that shuts down hands its running runs to another worker', async () => {
    const first = await nodes.start('worker', { config: { drainS: 0.2 } })
    provider.when('[handed]', endless('handed-step'), { text: 'Done.' })
    const id = await begin('[handed]')
    await running('handed-step')
    await nodes.start('worker')
    expect(await first.stop()).toBe(0)
    expect((await finished(id)).interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  })

  test('workers with free slots claim each queued run exactly once', async () => {
    const env = { ERRAND_WORKER_SLOTS: '2' }
    await Promise.all([nodes.start('worker', { env }), nodes.start('worker', { env })])
    provider.when(/\[many\]/, () => ({ text: 'Done.' }))
    const ids = await Promise.all(Array.from({ length: 40 }, (_, i) => begin(`${i} [many]`)))
    for (const id of ids)
      expect((await finished(id)).interaction).toMatchObject({ status: 'completed', output: 'Done.' })
    expect(provider.requests.filter(({ body }) => JSON.stringify(body).includes('[many]'))).toHaveLength(40)
  })
})
