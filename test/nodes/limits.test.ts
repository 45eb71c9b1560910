/** The limits of running and queued runs of a project apply to all nodes together. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createGate, ended, until } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const [RUNNING, QUEUED] = [3, 4]

onPostgres('limits over nodes', (cluster) => {
  let provider: FakeProvider
  let nodes: Server[] = []
  beforeAll(async () => {
    provider = await openFakeProvider()
    const database = await cluster().createDatabase()
    const config = { limits: { runningPerProject: RUNNING, queuedPerProject: QUEUED } }
    nodes = [await startServer({ provider, database, config })]
    nodes.push(await startServer({ provider, database, config, key: nodes[0]!.key }))
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    await provider?.close()
  })

  test('two nodes together run and queue no more runs than the limits allow', async () => {
    const gate = createGate()
    let atWork = 0
    let most = 0
    provider.when('[held]', ({ ended: answered }) => {
      most = Math.max(most, ++atWork)
      void answered.then(() => atWork--)
      return { text: 'Done.', hold: gate.opened }
    })
    const body = { instruction: '[held]', background: true }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => nodes[i % 2]!.post('/v1beta/interactions', body)),
    )
    const accepted = answers.filter(({ status }) => status === 200)
    expect(accepted).toHaveLength(RUNNING + QUEUED)
    for (const refused of answers) {
      if (refused.status !== 200) expect(errorOf(refused)).toMatchObject({ code: 'unavailable', status: 503 })
    }
    await until(() => atWork === RUNNING)
    gate.open()
    for (const { body: interaction } of accepted) {
      expect(await ended(nodes[0]!, interaction.interactionId)).toMatchObject({ status: 'completed' })
    }
    expect(most).toBe(RUNNING)
  })
})
