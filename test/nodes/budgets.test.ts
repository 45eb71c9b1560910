/** A budget counts the cost of all nodes: when it is spent, every node refuses new runs and stops its running ones. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ended, ROOMY, until } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { firstOwner } from '../support/visitor.ts'

const PATH = '/v1beta/interactions'

onPostgres('budgets over nodes', (cluster) => {
  let provider: FakeProvider
  let nodes: Server[] = []
  beforeAll(async () => {
    provider = await openFakeProvider()
    const database = await cluster().createDatabase()
    const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' }
    const models = { 'svc-3.5-flash': { ...model, price: { input: 30_000, output: 250_000 } } }
    const config = { models, limits: ROOMY }
    nodes = [await startServer({ database, config })]
    nodes.push(await startServer({ database, config, key: nodes[0]!.key }))
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    await provider?.close()
  })

  test('stops runs on all nodes when one node spends the budget, and logs each alert once', async () => {
    provider.when('[hi]', () => ({ text: 'Hi.' }))
    provider.when('[speaks]', () => ({ text: Array.from({ length: 5_000 }, (_, i) => `${i} `), delayMs: 20 }))
    const [one, other] = nodes as [Server, Server]
    const owner = await firstOwner(one)
    await owner.call('PUT', `${owner.project}/budget`, { monthlyCost: '5000', alertAt: [50], hardStop: true })
    const speaking = await Promise.all(
      nodes.map((node) => node.post(PATH, { instruction: '[speaks]', background: true })),
    )
    for (const [i, { body }] of speaking.entries()) {
      await until(async () => (await nodes[i]!.get(`${PATH}/${body.interactionId}`)).body.output !== '')
    }
    await owner.call('PUT', `${owner.project}/budget`, { monthlyCost: '3', alertAt: [50], hardStop: true })
    for (let i = 0; i < 3; i++) await one.post(PATH, { instruction: '[hi]' })
    const refusal = await until(async () => {
      const answer = await other.post(PATH, { instruction: '[hi]' })
      return answer.status !== 200 && answer
    })
    expect(errorOf(refusal)).toMatchObject({ status: 403, code: 'budget_exceeded' })
    for (const { body } of speaking) {
      expect(await ended(other, body.interactionId)).toMatchObject({
        status: 'completed',
        stopReason: 'budget_exceeded',
      })
    }
    const { entries } = (await owner.get(`${owner.account}/audit?pageSize=100`)).body
    const told = entries.filter(({ action }: { action: string }) => /^budget\.(alert|exceeded)$/.test(action))
    expect(told.map(({ details }: { details: { percent: string } }) => details.percent).sort()).toEqual(['100', '50'])
  })
})
