/** R18: one Idempotency-Key on a hundred POSTs at once is one interaction, also for who asks after kill -9. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { figure } from '../support/prove.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { onEveryStore } from './stores.ts'

const PATH = '/v1beta/interactions'
const AT_ONCE = 100

onEveryStore((createDatabase) => {
  let provider: FakeProvider
  let dataDir: string
  let database: string | undefined
  let server: Server
  beforeAll(async () => {
    provider = await openFakeProvider()
    dataDir = await mkdtemp(join(tmpdir(), 'errand-r18-'))
    database = await createDatabase()
    server = await start()
  })
  afterAll(async () => {
    await server?.stop()
    await provider?.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  function start(): Promise<Server> {
    const options = { provider, dataDir, database, config: { limits: ROOMY }, env: { ERRAND_LEASE_S: '1' } }
    return startServer({ ...options, ...(server && { key: server.key }) })
  }

  test('a hundred POSTs with one key are one interaction, and stay that over kill -9', async () => {
    provider.when('[once]', [{ fault: 'stall' }, { text: 'Done.' }])
    const body = { instruction: '[once]', background: true }
    const headers = { 'idempotency-key': 'one-key' }
    const ask = () => server.post(PATH, body, headers)

    const answers = await Promise.all(Array.from({ length: AT_ONCE }, ask))
    const [id, ...others] = new Set(answers.map((answer) => answer.body.interactionId as string))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(others).toEqual([])
    expect((await server.get(PATH)).body.interactions).toHaveLength(1)
    await provider.received(1)
    const other = () => server.post(PATH, { ...body, instruction: 'Another.' }, headers)
    expect(errorOf(await other())).toMatchObject({ status: 422, code: 'idempotency_mismatch' })

    await server.stop('SIGKILL')
    server = await start()
    const again = await Promise.all(Array.from({ length: AT_ONCE }, ask))
    expect(new Set(again.map((answer) => answer.body.interactionId))).toEqual(new Set([id]))
    expect(errorOf(await other()).status).toBe(422)
    expect(await ended(server, id!)).toMatchObject({ status: 'completed', output: 'Done.' })
    await checkEnded(server, id!)
    expect((await server.get(PATH)).body.interactions).toHaveLength(1)
    figure('R18', 'interactions of a hundred POSTs with one key, before and after kill -9', 1)
  })
})
