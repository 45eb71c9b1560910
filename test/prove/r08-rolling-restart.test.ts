/**
 * R8: repeated restarts by SIGTERM, under twenty streams. Some runs end during the drain, some wait for their model,
 * and some have a tool call or an answer that takes longer than the drain. None fails, and each reader resumes its
 * stream at the event where it was cut off. On Postgres two nodes restart in turn.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, createGate, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider, restOf } from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { onEveryStore } from './stores.ts'

const PATH = '/v1beta/interactions'
const STREAMS = 20
const ROUNDS = rounds(50, 1)
const DRAIN_S = 2
/** Duration of a tool call that outlasts the drain. */
const TOOL_S = DRAIN_S + 3
const EXIT_MS = 30_000
/** An answer that outlasts the drain. */
const LONG_ANSWER = Array.from({ length: 80 }, (_, i) => `Line ${i} of a long answer. `)
const KINDS = ['[quick]', '[silent]', '[working]', '[answering]']
const random = seeded('R8')

onEveryStore((createDatabase) => {
  let provider: FakeProvider
  let database: string | undefined
  let dirs: string[]
  const nodes: Server[] = []
  let gate = createGate()
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    const call = (code: string) => ({ toolCalls: [{ name: 'code_execution', args: { code } }] })
    const text = ['Done, ', 'and ', 'well.']
    provider.when('[quick]', { reasoning: 'Hm.', text })
    provider.when('[silent]', call('print(1)'), () => ({ text, hold: gate.opened }))
    provider.when('[answering]', (request) => ({
      text: restOf(LONG_ANSWER.join(''), request).match(/.{1,30}/g)!,
      delayMs: (TOOL_S * 1_000) / LONG_ANSWER.length,
    }))
    provider.when('[working]', call(`import time; print(1, flush=True); time.sleep(${TOOL_S}); print(2)`), { text })
    database = await createDatabase()
    const count = database === undefined ? 1 : 2
    dirs = await Promise.all(Array.from({ length: count + 1 }, () => mkdtemp(join(tmpdir(), 'errand-r08-'))))
    for (let i = 0; i < count; i++) nodes[i] = await start(i)
  })
  afterAll(async () => {
    gate.open()
    await Promise.all(nodes.map((node) => node.stop()))
    await provider?.close()
    for (const dir of dirs ?? []) await rm(dir, { recursive: true, force: true })
  })

  function start(i: number): Promise<Server> {
    return startServer({
      provider,
      dataDir: dirs[i]!,
      ...(database !== undefined && { database }),
      config: { limits: { ...ROOMY, runningPerProject: 100 } },
      env: { ERRAND_DRAIN_S: `${DRAIN_S}`, ERRAND_LEASE_S: '5', ERRAND_BLOBS_URL: `file://${dirs.at(-1)}` },
      ...(nodes[0] && { key: nodes[0].key }),
    })
  }

  /** Reads to the end from any node that answers, and resumes after each cut. */
  async function read(id: string): Promise<WireEvent[]> {
    const seen: WireEvent[] = []
    while (seen.at(-1)?.event !== 'completed') {
      try {
        const node = random.pick(nodes)
        const stream = await node.stream(`${PATH}/${id}:stream`, undefined, { 'last-event-id': `${seen.length}` })
        for await (const event of stream.events) seen.push(event)
      } catch {
        await sleep(50) // No node is listening.
      }
    }
    return seen
  }

  test('during repeated restarts no run fails, and no stream misses an event', {
    timeout: ROUNDS * 120_000,
  }, async () => {
    const tally = { restarts: 0, runs: 0, slowestExitMs: 0 }
    for (let round = 0; round < ROUNDS; round++) {
      gate = createGate()
      const kinds = Array.from({ length: STREAMS }, (_, i) => KINDS[i % KINDS.length]!)
      const ids = await Promise.all(kinds.map((kind) => begin(kind)))
      const reading = ids.map((id) => read(id))
      for (const [i, node] of nodes.entries()) {
        await sleep(random.whole(0, 500))
        const asked = performance.now()
        expect(await node.stop()).toBe(0)
        tally.slowestExitMs = Math.max(tally.slowestExitMs, performance.now() - asked)
        nodes[i] = await start(i)
        tally.restarts++
      }
      gate.open()
      for (const [i, id] of ids.entries()) {
        const { interaction } = await checkEnded(nodes[0]!, id, await reading[i])
        const output = kinds[i] === '[answering]' ? LONG_ANSWER.join('') : 'Done, and well.'
        expect(interaction, kinds[i]).toMatchObject({ status: 'completed', output })
      }
      tally.runs += ids.length
    }
    figure('R8', 'restarts', tally.restarts)
    figure('R8', 'runs failed, or streams with an event missing or twice, of runs', `0 of ${tally.runs}`)
    figure('R8', 'slowest exit, s', (tally.slowestExitMs / 1_000).toFixed(1))
    expect(tally.slowestExitMs).toBeLessThan(EXIT_MS)
  })

  async function begin(instruction: string): Promise<string> {
    const body = { instruction, tools: ['code_execution'], background: true }
    const answer = await random.pick(nodes).post(PATH, body)
    expect(answer.status, answer.text).toBe(200)
    return answer.body.interactionId
  }
})
