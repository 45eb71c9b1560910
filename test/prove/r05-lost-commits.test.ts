/**
 * R5: a connection to Postgres is cut around a COMMIT: before it arrives, right after it was forwarded, or after the
 * commit when only the answer is lost. The server cannot distinguish these cases, so it checks whether the write exists
 * instead of repeating it. No event is stored twice, none is missing, followers receive each once, and a request that
 * is retried with its key is one interaction.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { openPostgresProxy, type PostgresProxy } from '../support/postgres-proxy.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'

const CUTS = rounds(200, 12)
/** Fragments with pauses long enough that each one becomes an event. */
const ANSWER = Array.from({ length: 12 }, (_, i) => `part ${i}, ${'long '.repeat(20)}`)
const random = seeded('R5')

onPostgres('R5', (cluster) => {
  let provider: FakeProvider
  let proxy: PostgresProxy
  let server: Server
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    provider.when('[says]', { text: ANSWER, delayMs: 10 })
    proxy = await openPostgresProxy(cluster().directory)
    const database = proxy.through(await cluster().createDatabase())
    server = await startServer({ provider, database, config: { limits: ROOMY }, env: { ERRAND_LEASE_S: '2' } })
  })
  afterAll(async () => {
    await server?.stop()
    await proxy?.close()
    await provider?.close()
  })

  test(`${CUTS} cuts around COMMIT neither duplicate nor lose an event`, { timeout: 30 * 60_000 }, async () => {
    /** Events that the caller received, by interaction id. */
    const runs = new Map<string, WireEvent[]>()
    const cuts = { before: 0, behind: 0, after: 0 }
    for (let made = 0; made < CUTS; made++) {
      const how = random.pick(['before', 'behind', 'after'] as const)
      let isCut = false
      void proxy.cut(how, random.whole(0, 10)).then(() => {
        isCut = true
        cuts[how]++
      })
      while (!isCut) {
        const seen = await runOne(`key-${runs.size}`)
        runs.set(seen.at(-1)!.data.interactionId, seen)
      }
    }
    for (const [id, seen] of runs) {
      const { interaction } = await checkEnded(server, id, seen)
      expect(interaction).toMatchObject({ status: 'completed', output: ANSWER.join('') })
    }
    const stored: string[] = []
    for (let token = ''; ; ) {
      const { body } = await server.get(`/v1beta/interactions?pageSize=100${token && `&pageToken=${token}`}`)
      stored.push(...body.interactions.map(({ interactionId }: { interactionId: string }) => interactionId))
      if (body.nextPageToken === undefined) break
      token = encodeURIComponent(body.nextPageToken)
    }
    expect(stored.sort()).toEqual([...runs.keys()].sort())
    figure('R5', 'connections cut before, during and after the commit', Object.values(cuts).join(', '))
    figure('R5', 'interactions', runs.size)
  })

  /** Streams one run from its first event. Retries with the same key if the request is refused. */
  async function runOne(key: string): Promise<WireEvent[]> {
    for (;;) {
      const headers = { 'idempotency-key': key }
      const stream = await server.stream('/v1beta/interactions:stream', { instruction: '[says]' }, headers)
      if (stream.status !== 200) {
        expect([stream.status, stream.headers.get('retry-after')]).toEqual([503, '5'])
        stream.drop()
        continue
      }
      return stream.all()
    }
  }
})
