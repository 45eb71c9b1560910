/** Nodes that reach Postgres through a transaction pooler, where each transaction may use another connection. */
import { afterAll, test as always, beforeAll, expect } from 'vitest'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { checkEnded } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres, quiet } from '../store/backends.ts'
import { hasPgbouncer, type Pooler, startPgbouncer } from '../support/pgbouncer.ts'
import type { Server } from '../support/server.ts'
import { type Nodes, openNodes } from './start-nodes.ts'

/** Fewer connections than one node would use. */
const CONNECTIONS = 4
const test = always.skipIf(!hasPgbouncer)

onPostgres('by way of PgBouncer', (cluster) => {
  let provider: FakeProvider
  let pooler: Pooler
  let nodes: Nodes
  let database: string
  let one: Server
  let other: Server
  beforeAll(async () => {
    if (!hasPgbouncer) return
    provider = await openFakeProvider({ record: false })
    pooler = await startPgbouncer(cluster().directory, CONNECTIONS)
    database = pooler.through(await cluster().createDatabase())
    nodes = openNodes(provider, database)
  })
  afterAll(async () => {
    await nodes?.close()
    await pooler?.stop()
    await provider?.close()
  })

  test('migrates the schema once if many nodes start at the same time', async () => {
    const opened = await Promise.all(
      Array.from({ length: 6 }, () => openPostgres(database, { poolSize: 2, log: quiet })),
    )
    await Promise.all(opened.map((db) => db.close()))
    one = await nodes.start('all')
    other = await nodes.start('all')
  })

  test('concurrent runs keep their own output when each is followed from the other node', async () => {
    provider.when(/\[say (\w+)\]/, ({ body }) => {
      const word = /\[say (\w+)\]/.exec(JSON.stringify(body.messages))![1]!
      return { text: Array.from({ length: 5 }, (_, i) => `${word} ${i} `), delayMs: 20 }
    })
    const words = Array.from({ length: 16 }, (_, i) => `word${i}`)
    await Promise.all(
      words.map(async (word, i) => {
        const [here, there] = i % 2 ? [one, other] : [other, one]
        const headers = { 'x-svc-api-key': one.key }
        const body = { instruction: `[say ${word}]`, background: true }
        const { body: accepted } = await here.post('/v1beta/interactions', body, headers)
        const stream = await there.stream(`/v1beta/interactions/${accepted.interactionId}:stream`, undefined, headers)
        const { interaction } = await checkEnded(there, accepted.interactionId, await stream.all(), one.key)
        expect(interaction).toMatchObject({
          status: 'completed',
          output: `${word} 0 ${word} 1 ${word} 2 ${word} 3 ${word} 4 `,
        })
      }),
    )
  })

  test('a project never sees another project’s data on a connection that both used', async () => {
    const stranger = await one.createKey('strangers')
    const { body } = await one.post('/v1beta/agents', { id: 'mine' })
    expect(body.id).toBe('mine')
    const asked = Array.from({ length: 40 }, async (_, i) => {
      const key = i % 2 ? stranger : one.key
      const { status } = await (i % 3 ? one : other).get('/v1beta/agents/mine', { 'x-svc-api-key': key })
      expect(status).toBe(i % 2 ? 404 : 200)
    })
    await Promise.all(asked)
  })
})
