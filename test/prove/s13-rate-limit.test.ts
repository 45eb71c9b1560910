/**
 * S13: three times as many calls as a project's limit, on two nodes at once. Together the nodes admit exactly the
 * limit, each response has the number of remaining calls, and a caller that waits for `Retry-After` is admitted.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Answer, type Server, startServer } from '../support/server.ts'

const CALLS = rounds(1_000, 60)
const CREATIONS = rounds(100, 20)

onPostgres('S13', (cluster) => {
  let provider: FakeProvider
  let database: string
  let nodes: Server[] = []
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    provider.when('[says]', { text: 'Hello.' })
    database = await cluster().createDatabase()
    const limits = {
      callsPerMinute: CALLS,
      interactionsPerMinute: CREATIONS,
      runningPerProject: 500,
      queuedPerProject: 1_000,
    }
    nodes = [await startServer({ provider, database, config: { limits } })]
    nodes.push(await startServer({ provider, database, config: { limits }, key: nodes[0]!.key }))
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    await provider?.close()
  })

  const node = (i: number) => nodes[i % nodes.length]!
  const KINDS: [string, number, (i: number) => Promise<Answer>][] = [
    ['calls', CALLS, (i) => node(i).get('/v1beta/agents?pageSize=1')],
    [
      'interactions',
      CREATIONS,
      (i) => node(i).post('/v1beta/interactions', { instruction: '[says]', background: true }),
    ],
  ]

  test.each(KINDS)(
    'of three times as many %s as allowed, exactly the limit is admitted',
    { timeout: 300_000 },
    async (kind, limit, call) => {
      const answers = await atOnce(3 * limit, call)
      const admitted = answers.filter(({ status }) => status === 200)
      const refused = answers.filter(({ status }) => status === 429)
      expect(admitted.length + refused.length).toBe(3 * limit)
      expect(Math.abs(admitted.length - limit)).toBeLessThanOrEqual(1)
      figure('S13', `${kind} admitted of a limit of ${limit}`, admitted.length)

      // The remaining calls count down across both nodes, each number once.
      const left = admitted.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
      expect(left.sort((a, b) => a - b)).toEqual(left.map((_, i) => i))
      for (const { headers } of answers)
        expect(headers.get('ratelimit')).toMatch(new RegExp(`^"${kind}";r=\\d+;t=\\d+$`))

      const waits = refused.map(({ headers }) => Number(headers.get('retry-after')))
      for (const wait of waits) expect(wait >= 1 && wait <= 60, `${wait}`).toBe(true)
      await pass(Math.max(...waits))
      const again = await atOnce(limit, call)
      const served = again.filter(({ status }) => status === 200).length
      expect(served / limit).toBeGreaterThanOrEqual(0.999)
      figure('S13', `${kind} that waited and were served, of ${limit}`, served)
    },
  )

  /** Lets this time pass. The full form waits; the short form moves the stored windows into the past instead. */
  async function pass(seconds: number): Promise<void> {
    if (rounds(1, 0) === 1) return sleep(seconds * 1000)
    const client = new pg.Client(database)
    await client.connect()
    await client.query("set errand.project = '*'")
    await client.query('update rate_windows set ends_at = ends_at - $1', [seconds * 1000])
    await client.end()
  }
})

async function atOnce(count: number, call: (i: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => call(i)))
}
