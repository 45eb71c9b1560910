/**
 * R4: Postgres is killed and restarted repeatedly, under load on two nodes. Refused callers get 503 with Retry-After
 * and retry with the same key. In the end each request is one completed interaction. Open streams stay open and miss no
 * event.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'

const INTERACTIONS = rounds(5_000, 100)
const CALLERS = 6
/** Minimum number of kills. Requests continue until it is reached. */
const KILLS = rounds(20, 3)
/** Time between two kills: 5 to 20 seconds at full length. */
const PAUSE_MS = { from: rounds(5_000, 500), to: rounds(20_000, 2_000) }
const ANSWER = ['Some ', 'words ', 'of an ', 'answer.']
const random = seeded('R4')

onPostgres('R4', (cluster) => {
  let provider: FakeProvider
  let nodes: Server[] = []
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    provider.when('[says]', { text: ANSWER, delayMs: 30 })
    const database = await cluster().createDatabase()
    const limits = { ...ROOMY, runningPerProject: 100, queuedPerProject: 1_000 }
    const options = { provider, database, config: { limits }, env: { ERRAND_LEASE_S: '10' } }
    nodes = [await startServer(options)]
    nodes.push(await startServer({ ...options, key: nodes[0]!.key }))
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    await provider?.close()
  })

  test(`completes ${INTERACTIONS} interactions while the database is killed repeatedly`, {
    timeout: 120 * 60_000,
  }, async () => {
    const refused: Record<string, number> = {}
    /** Events that a follower received, by interaction id. */
    const accepted = new Map<string, Promise<WireEvent[] | undefined>>()
    let next = 0
    const recoveries: number[] = []
    const isOver = () => next >= INTERACTIONS && recoveries.length >= KILLS

    /** Retries each request until it is accepted. */
    async function call(): Promise<void> {
      while (!isOver()) {
        const key = `key-${next++}`
        const body = { instruction: '[says]', background: true }
        for (;;) {
          const {
            status,
            headers,
            body: answer,
          } = await random.pick(nodes).post('/v1beta/interactions', body, { 'idempotency-key': key })
          if (status === 200) {
            accepted.set(answer.interactionId, follow(random.pick(nodes), answer.interactionId))
            break
          }
          refused[status] = (refused[status] ?? 0) + 1
          expect([status, headers.get('retry-after')], JSON.stringify(answer)).toEqual([503, '5'])
          await sleep(200)
        }
        await sleep(random.whole(0, 200))
      }
    }

    async function kill(): Promise<void> {
      while (!isOver()) {
        await sleep(random.whole(PAUSE_MS.from, PAUSE_MS.to))
        await cluster().crash()
        await sleep(random.whole(0, 1_000))
        await cluster().restart()
        const started = performance.now()
        for (const node of nodes) {
          while ((await node.get('/v1beta/interactions?pageSize=1')).status !== 200) await sleep(20)
        }
        recoveries.push(performance.now() - started)
      }
    }
    await Promise.all([kill(), ...Array.from({ length: CALLERS }, call)])

    expect(accepted.size).toBe(next)
    for (const [id, seen] of accepted) {
      const { status, output, error } = await ended(nodes[0]!, id)
      expect({ status, output, error }).toEqual({ status: 'completed', output: ANSWER.join('') })
      await checkEnded(nodes[1]!, id, await seen)
    }
    expect(await countInteractions(nodes[0]!)).toBe(next)
    expect(Object.keys(refused)).toEqual(['503'])
    for (const recovery of recoveries) expect(recovery).toBeLessThan(5_000)
    figure('R4', 'interactions', next)
    figure('R4', 'kills', recoveries.length)
    figure('R4', 'refused with 503', refused['503'] ?? 0)
    figure('R4', 'longest recovery, ms', Math.round(Math.max(...recoveries)))
  })
})

/**
 * Follows a stream, which must stay open while the database is down. Resolves with undefined if the stream could not be
 * opened.
 */
async function follow(node: Server, id: string): Promise<WireEvent[] | undefined> {
  const stream = await node.stream(`/v1beta/interactions/${id}:stream`)
  if (stream.status === 200) return stream.all()
  stream.drop()
  return undefined
}

async function countInteractions(server: Server): Promise<number> {
  let count = 0
  for (let token = ''; ; ) {
    const { body } = await server.get(`/v1beta/interactions?pageSize=100${token && `&pageToken=${token}`}`)
    count += body.interactions.length
    if (body.nextPageToken === undefined) return count
    token = encodeURIComponent(body.nextPageToken)
  }
}
