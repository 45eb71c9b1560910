/**
 * R3: a worker is stopped (SIGSTOP) until its leases have expired, while its models stream and its code runs. Another
 * worker takes over its runs and completes them. When the first worker continues, it writes nothing, closes its model
 * streams and ends its sandboxes.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Nodes, openNodes } from '../nodes/start-nodes.ts'
import { onPostgres } from '../store/backends.ts'
import { processesWith } from '../support/processes.ts'
import { figure, rounds } from '../support/prove.ts'
import type { Server } from '../support/server.ts'

const RUNS = 10
const ROUNDS = rounds(5, 1)
/** Longer in the short form, which runs in parallel with other tests. */
const STOPS_WITHIN_MS = rounds(1_000, 10_000)
const PATH = '/v1beta/interactions'

onPostgres('several nodes', (cluster) => {
  let provider: FakeProvider
  let nodes: Nodes
  let api: Server
  beforeAll(async () => {
    provider = await openFakeProvider()
    nodes = openNodes(provider, await cluster().createDatabase())
    api = await nodes.start('api')
  })
  afterAll(async () => {
    await nodes?.close()
    await provider?.close()
  })

  /**
   * Starts runs: half stream from a model that never stops, half run endless code. Resolves when all runs have reached
   * that point.
   */
  async function begin(mark: string): Promise<string[]> {
    const thoughts = Array.from({ length: 5_000 }, (_, i) => `thought ${i}, `)
    const code = `exec -a ${mark} sleep 600`
    for (let i = 0; i < RUNS / 2; i++) {
      provider.when(`[${mark} speaks ${i}]`, [{ reasoning: thoughts, delayMs: 20 }, { text: 'Done.' }])
    }
    provider.when(
      `[${mark} works]`,
      { toolCalls: [{ name: 'code_execution', args: { language: 'bash', code } }] },
      { text: 'Done.' },
    )
    const kinds = Array.from({ length: RUNS }, (_, i) => (i < RUNS / 2 ? `speaks ${i}` : 'works'))
    const answers = await Promise.all(
      kinds.map((kind) => {
        const body = { instruction: `[${mark} ${kind}]`, background: true, tools: ['code_execution'] }
        return api.post(PATH, body)
      }),
    )
    await expect.poll(() => asked(`${mark} speaks`).length, { timeout: 30_000 }).toBe(RUNS / 2)
    await expect.poll(async () => (await processesWith(mark)).length, { timeout: 30_000 }).toBe(RUNS / 2)
    return answers.map(({ body }) => body.interactionId)
  }

  function asked(text: string) {
    return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(text))
  }

  test('a worker that was stopped until its leases expired writes nothing when it continues, and stops its runs', {
    timeout: ROUNDS * 120_000,
  }, async () => {
    let slowest = 0
    for (let round = 0; round < ROUNDS; round++) {
      const mark = `mark-${randomUUID()}`
      const old = await nodes.start('worker')
      const ids = await begin(mark)
      const calls = asked(`${mark} speaks`)
      await nodes.start('worker')
      old.process.kill('SIGSTOP')
      const before = []
      for (const id of ids) {
        expect(await ended(api, id)).toMatchObject({ status: 'completed', output: 'Done.' })
        before.push((await checkEnded(api, id)).events)
      }
      const goesOnAt = performance.now()
      old.process.kill('SIGCONT')
      for (const call of calls) expect(await call.ended).toBe('closed')
      await expect.poll(() => processesWith(mark), { timeout: 30_000, interval: 20 }).toEqual([])
      slowest = Math.max(slowest, performance.now() - goesOnAt)
      for (const [i, id] of ids.entries()) await checkEnded(api, id, before[i])
      await nodes.stopWorkers()
    }
    figure('R3', 'runs of workers that were stopped past their leases', ROUNDS * RUNS)
    figure('R3', 'events that the old worker added to them', 0)
    figure('R3', 'longest time until the old worker had removed all of them, ms', Math.round(slowest))
    expect(slowest).toBeLessThan(STOPS_WITHIN_MS)
  })
})
