/**
 * R18: a hundred concurrent POSTs with one Idempotency-Key start one interaction, also after kill -9. If it fails with
 * a retryable error, the next hundred start one new interaction.
 */
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

  test('a hundred POSTs with one key start one interaction, even after kill -9', async () => {
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

  test('a hundred POSTs with the key of a run that failed with a retryable error start one new run', async () => {
    let isDown = true
    provider.when('[retried]', () => (isDown ? { fault: 'status:503' } : { fault: 'stall' }))
    const body = { instruction: '[retried]', background: true }
    const headers = { 'idempotency-key': 'released-key' }
    const ask = () => server.post(PATH, body, headers)
    const other = () => server.post(PATH, { ...body, instruction: 'Another.' }, headers)
    const failed = (await ask()).body.interactionId as string
    const { error } = await ended(server, failed)
    expect(error).toMatchObject({ code: 'model_error', retryable: true })

    isDown = false
    expect(errorOf(await other())).toMatchObject({ status: 422, code: 'idempotency_mismatch' })
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, ask))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const [id, ...others] = new Set(answers.map((answer) => answer.body.interactionId as string))
    expect(others).toEqual([])
    expect(id).not.toBe(failed)
    expect(new Set(answers.map((answer) => answer.body.retryOf))).toEqual(new Set([failed]))
    const started = answers.filter(({ headers }) => headers.get('idempotent-replayed') === null)
    expect(started).toHaveLength(1)
    expect(errorOf(await other()).status).toBe(422)

    await server.stop('SIGKILL')
    provider.when('[retried]', { text: 'Done.' })
    server = await start()
    const again = await Promise.all(Array.from({ length: AT_ONCE }, ask))
    expect(new Set(again.map((answer) => answer.body.interactionId))).toEqual(new Set([id]))
    expect(await ended(server, id!)).toMatchObject({ status: 'completed', output: 'Done.' })
    await checkEnded(server, id!)
    expect((await checkEnded(server, failed)).interaction).toMatchObject({ status: 'failed', error })
    const { interactions } = (await server.get(PATH)).body
    const mine = interactions.filter(({ instruction }: { instruction: string }) => instruction === '[retried]')
    expect(mine).toHaveLength(2)
    figure('R18', 'new runs of a hundred POSTs with the key of a run that failed with a retryable error', 1)
  })
})
