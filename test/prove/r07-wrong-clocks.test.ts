/**
 * R7: workers whose wall clocks are an hour ahead and an hour behind. Leases use the database's clock, so no worker
 * takes another's run. Deadlines are on time, even for a run that moves between workers with different clocks.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Nodes, openNodes } from '../nodes/start-nodes.ts'
import { onPostgres } from '../store/backends.ts'
import { figure, rounds } from '../support/prove.ts'
import type { Server } from '../support/server.ts'

const RUNS = rounds(10, 6)
const HOUR_MS = 3_600_000
/** Longer in the short form, which runs in parallel with other tests. */
const LATE_MS = rounds(1_000, 10_000)
const PATH = '/v1beta/interactions'

/** Runs Node with a wall clock that is wrong by `byMs`. Monotonic clocks are right. */
function wrongClock(byMs: number): Record<string, string> {
  const code = `const Right = Date
globalThis.Date = class extends Right {
  constructor(...given) { given.length > 0 ? super(...given) : super(Right.now() + ${byMs}) }
  static now() { return Right.now() + ${byMs} }
}`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

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
  afterEach(() => nodes.stopWorkers())

  const startAhead = () => nodes.start('worker', { env: wrongClock(HOUR_MS) })
  const startBehind = () => nodes.start('worker', { env: wrongClock(-HOUR_MS) })

  function asked(text: string) {
    return provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(text))
  }

  async function begin(instruction: string, fields: object = {}): Promise<string> {
    return (await api.post(PATH, { instruction, background: true, ...fields })).body.interactionId
  }

  test('no worker takes over another’s run during three lease times', async () => {
    await Promise.all([startAhead(), startBehind()])
    const { promise: hold, resolve: release } = Promise.withResolvers<void>()
    provider.when('[held]', { text: 'Done.', hold })
    const ids = await Promise.all(Array.from({ length: RUNS }, () => begin('[held]')))
    await expect.poll(() => asked('[held]').length, { timeout: 30_000 }).toBe(RUNS)
    await sleep(6_500)
    release()
    for (const id of ids) expect(await ended(api, id)).toMatchObject({ status: 'completed' })
    for (const id of ids) await checkEnded(api, id)
    // A worker that took over a run would have called its model a second time.
    expect(asked('[held]')).toHaveLength(RUNS)
    figure('R7', `leases taken from live workers, of ${RUNS} runs for three leases`, 0)
  })

  const ways = [
    ['ahead to the one behind', startAhead, startBehind],
    ['behind to the one ahead', startBehind, startAhead],
  ] as const
  test.each(ways.slice(0, rounds(2, 1)))(
    'a run that moves from the worker %s ends at its deadline',
    async (_, startFirst, startSecond) => {
      const limitS = 12
      const first = await startFirst()
      provider.when('[late]', { fault: 'stall' })
      provider.requests.length = 0
      const acceptedAt = performance.now()
      const id = await begin('[late]', { policy: { maxTurnDuration: limitS } })
      await expect.poll(() => asked('[late]').length, { timeout: 30_000 }).toBe(1)
      await startSecond()
      await first.stop('SIGKILL')
      const end = await ended(api, id)
      const lateMs = performance.now() - acceptedAt - limitS * 1_000
      expect(end).toMatchObject({ status: 'failed', error: { code: 'deadline_exceeded' } })
      expect(asked('[late]')).toHaveLength(2)
      await checkEnded(api, id)
      figure('R7', 'delay of a deadline across two wrong clocks, ms', Math.round(lateMs))
      expect(lateMs).toBeGreaterThan(-50)
      expect(lateMs).toBeLessThan(LATE_MS)
    },
  )
})
