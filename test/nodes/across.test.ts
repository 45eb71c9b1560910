/**
 * What one node does for a run that another works on: streams it, cancels it, decides for it, takes it up when its worker
 * is gone. Nodes are processes with data dirs of their own, so a worker finds nothing of another's sandboxes.
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
  /** A step that is found by its marker among the processes, and ends with nothing but its sandbox. */
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

  /** Resolves when the stream shows an event that `look` finds. */
  async function shown(at: Server, id: string, look: (event: WireEvent) => boolean): Promise<void> {
    const stream = await at.stream(`${PATH}/${id}:stream`)
    for await (const event of stream.events) if (look(event)) break
    stream.drop()
  }

  test('a run streams from every node, and is resumed on another at any event', async () => {
    await nodes.start('worker')
    const { promise: hold, resolve: release } = Promise.withResolvers<void>()
    const words = Array.from({ length: 40 }, (_, i) => `word ${i} `)
    provider.when('[stream]', { text: words, hold, holdAfter: 20 })
    const first = await a.stream(`${PATH}:stream`, { instruction: '[stream]' })
    const id = first.headers.get('x-interaction-id')!
    // What the worker has said so far is on both, while it goes on.
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

  test('a cancelled run is dead on its worker when the answer comes, asked of any node', async () => {
    await nodes.start('worker')
    provider.when('[cancel]', endless('cancel-me'))
    const id = await begin('[cancel]')
    await running('cancel-me')
    const answers = await Promise.all([a, b, b].map((node) => node.post(`${PATH}/${id}:cancel`)))
    expect(await processesWith('cancel-me')).toEqual([])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await finished(id, b)).interaction.status).toBe('cancelled')
  })

  test('a run whose worker is gone can be cancelled all the same; what it left ends with its node’s next start', async () => {
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

  test('a key that one node revokes is dead on the others, and so is a switch', async () => {
    const made = await a.errand(['keys', 'create', '--name', 'short-lived'])
    const header = { 'x-svc-api-key': made.stdout.trim() }
    expect((await b.get(PATH, header)).status).toBe(200)
    expect((await b.errand(['settings', 'set', 'experimental.managedAgents', 'off'])).code).toBe(0)
    for (const node of [a, b]) expect((await node.get(PATH, header)).status).toBe(403)
    expect((await b.errand(['settings', 'set', 'experimental.managedAgents', 'on'])).code).toBe(0)
    expect((await a.errand(['keys', 'revoke', made.stderr.split(' ')[0]!])).code).toBe(0)
    for (const node of [b, a]) expect((await node.get(PATH, header)).status).toBe(401)
  })

  test('a decision on one node lets the run on another go on', async () => {
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

  test('a run whose worker was killed goes on elsewhere, with its files and without its sandbox, and says so', async () => {
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
    // Its host is another process, and no one else on its node could end this.
    expect(await processesWith('frozen-step')).not.toEqual([])
    frozen.process.kill('SIGCONT')
    await gone('frozen-step')
    expect((await finished(id)).events).toEqual(events)
  })

  test('a worker that is told to stop hands what runs to another', async () => {
    const first = await nodes.start('worker', { config: { drainS: 0.2 } })
    provider.when('[handed]', endless('handed-step'), { text: 'Done.' })
    const id = await begin('[handed]')
    await running('handed-step')
    await nodes.start('worker')
    expect(await first.stop()).toBe(0)
    expect((await finished(id)).interaction).toMatchObject({ status: 'completed', output: 'Done.' })
  })

  test('what waits is taken by whichever worker has room, each once', async () => {
    const env = { ERRAND_WORKER_SLOTS: '2' }
    await Promise.all([nodes.start('worker', { env }), nodes.start('worker', { env })])
    provider.when(/\[many\]/, () => ({ text: 'Done.' }))
    const ids = await Promise.all(Array.from({ length: 40 }, (_, i) => begin(`${i} [many]`)))
    for (const id of ids)
      expect((await finished(id)).interaction).toMatchObject({ status: 'completed', output: 'Done.' })
    expect(provider.requests.filter(({ body }) => JSON.stringify(body).includes('[many]'))).toHaveLength(40)
  })
})
