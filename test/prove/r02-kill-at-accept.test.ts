/**
 * R2: the server is killed while it accepts requests: at a random moment under many POSTs, or after storing a request
 * and before answering it. Every interaction whose id was returned exists on the next server, and ends.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider, restOf } from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import { onEveryStore } from './stores.ts'

const POSTS = 25
const ROUNDS = rounds(10, 2)
const random = seeded('R2')

onEveryStore((createDatabase) => {
  let provider: FakeProvider
  let dataDir: string
  let database: string | undefined
  let server: Server
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    provider.when(/./, (request) => ({ text: restOf('Done.', request) }))
    dataDir = await mkdtemp(join(tmpdir(), 'errand-r02-'))
    database = await createDatabase()
    server = await start()
  })
  afterAll(async () => {
    await server?.stop()
    await provider?.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  function start(env: Record<string, string> = {}): Promise<Server> {
    const config = { limits: { ...ROOMY, runningPerProject: 100, queuedPerProject: 1_000 } }
    const options = { provider, dataDir, database, config, env: { ERRAND_LEASE_S: '1', ...env } }
    return startServer({ ...options, ...(server && { key: server.key }) })
  }

  /** Sends all requests at once. Returns the ids of those that were answered, and the number of the others. */
  async function post(at: Server, onAnswer: () => void): Promise<{ ids: string[]; cut: number }> {
    const answers = await Promise.all(
      Array.from({ length: POSTS }, async () => {
        const body = { instruction: 'Once.', background: true }
        const answer = await at.post('/v1beta/interactions', body).catch(() => undefined)
        if (answer) onAnswer()
        return answer
      }),
    )
    const ids = answers.flatMap((answer) => (answer?.status === 200 ? [answer.body.interactionId as string] : []))
    return { ids, cut: answers.filter((answer) => !answer).length }
  }

  test('no acknowledged interaction is missing after kill -9 while requests are accepted', {
    timeout: ROUNDS * 60_000,
  }, async () => {
    const tally = { posts: 0, acknowledged: 0, cut: 0 }
    for (let round = 0; round < ROUNDS; round++) {
      let answered = 0
      const killAfter = random.whole(0, POSTS)
      const posted = post(server, () => {
        if (++answered === killAfter) server.process.kill('SIGKILL')
      })
      if (killAfter === 0) {
        await sleep(random.whole(0, 60))
        server.process.kill('SIGKILL')
      }
      const byChance = await posted
      await server.stop('SIGKILL')
      server = await start({ ERRAND_CRASH_AT: `accepted:${random.whole(1, POSTS)}` })
      const atPoint = await post(server, () => {})
      await server.stop('SIGKILL')
      server = await start()
      for (const { ids, cut } of [byChance, atPoint]) {
        for (const id of ids) {
          const end = await ended(server, id)
          expect(end).toMatchObject({ status: 'completed', output: 'Done.' })
          await checkEnded(server, id)
        }
        tally.posts += POSTS
        tally.acknowledged += ids.length
        tally.cut += cut
      }
    }
    figure('R2', 'POSTs, of which acknowledged, interrupted', `${tally.posts}: ${tally.acknowledged}, ${tally.cut}`)
    figure('R2', 'acknowledged interactions that were missing', 0)
  })
})
