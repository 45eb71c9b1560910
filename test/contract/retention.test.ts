/**
 * Checks retention: expired interactions are removed with all their data, and each removal is recorded with who caused
 * it.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'
const RUNS = 130

let dataDir: string
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'errand-retention-'))
  provider = await openFakeProvider()
  provider.when('[hi]', { text: 'Hi.' })
  server = await start(30)
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(dataDir, { recursive: true, force: true })
})

function start(retentionDays: number): Promise<Server> {
  const limits = { retentionDays, interactionsPerMinute: 10_000, callsPerMinute: 10_000, runningPerProject: RUNS }
  return startServer({ provider, dataDir, config: { limits }, ...(server && { key: server.key }) })
}

async function run(): Promise<string> {
  const files = [{ name: 'a.txt', content: 'abc', encoding: 'utf-8' }]
  return (await server.post(PATH, { instruction: '[hi]', files })).body.interactionId
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into what is printed.
async function removed(): Promise<any[]> {
  const { code, stdout, stderr } = await server.errand(['audit', 'removed', '--json', '--limit', '1000'])
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

it('records the removal of an interaction by a caller with its key', async () => {
  const id = await run()
  const { body } = await server.get(PATH)
  expect(body.interactions).toHaveLength(1)
  expect((await server.request('DELETE', `${PATH}/${id}`)).status).toBe(200)
  expect((await server.request('DELETE', `${PATH}/${id}`)).status).toBe(404)
  const [record, ...others] = await removed()
  expect(others).toEqual([])
  expect(record).toMatchObject({ interactionId: id, files: 1, fileBytes: 3, removedBy: expect.stringMatching(/^key_/) })
  expect(record.events).toBeGreaterThan(2)
  const listed = await server.errand(['audit', 'removed'])
  expect(listed.stdout).toContain(id)
  expect(listed.stdout).toContain(record.removedBy)
})

it('removes expired interactions in batches with their files, and records each one once', {
  timeout: 120_000,
}, async () => {
  const ids = await Promise.all(Array.from({ length: RUNS }, run))
  await server.stop()
  server = await start(0)
  for (const id of ids) while ((await server.get(`${PATH}/${id}`)).status !== 404) await wait()
  const byRetention = (await removed()).filter(({ removedBy }) => removedBy === 'retention')
  expect(byRetention.map(({ interactionId }) => interactionId).sort()).toEqual([...ids].sort())
  const owners = async () => (await readdir(join(dataDir, 'blobs'))).filter((name) => name.startsWith('int_'))
  while ((await owners()).length > 0) await wait()
})

function wait(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50))
}
