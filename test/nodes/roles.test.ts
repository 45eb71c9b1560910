/** Processes of each role on one Postgres: who answers what, and who needs what. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { type Server, startServer } from '../support/server.ts'

onPostgres('roles', (cluster) => {
  let provider: FakeProvider
  let files: string
  let database: string
  let nodes: Server[] = []

  beforeAll(async () => {
    provider = await openFakeProvider()
    files = await mkdtemp(join(tmpdir(), 'errand-shared-'))
  })
  afterAll(async () => {
    await provider?.close()
    await rm(files, { recursive: true, force: true })
  })
  beforeEach(async () => {
    database = await cluster().createDatabase()
  })
  afterEach(async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    nodes = []
  })

  async function start(role: 'api' | 'worker' | 'all', env: Record<string, string> = {}): Promise<Server> {
    const shared = { ERRAND_ROLE: role, ERRAND_BLOBS_URL: `file://${files}`, ...env }
    const node = await startServer({ provider, database, key: role === 'worker' ? 'none' : nodes[0]?.key, env: shared })
    nodes.push(node)
    return node
  }

  test('an api answers callers without a sandbox host, and a worker does the work', async () => {
    // No bubblewrap, no Python: nothing on the api's PATH.
    const api = await start('api', { PATH: '/nowhere' })
    const worker = await start('worker')
    provider.when(
      '[add]',
      { toolCalls: [{ name: 'code_execution', args: { code: 'print(17 * 23)' } }] },
      { text: '391' },
    )
    const { status, body } = await api.post('/v1beta/interactions', { instruction: '[add]', tools: ['code_execution'] })
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 'completed', output: '391' })
    expect(worker.output()).not.toContain(api.key)
  })

  test('a worker tells its health, and nothing to callers', async () => {
    const api = await start('api')
    const worker = await start('worker', { ERRAND_METRICS_KEY: '0123456789abcdef' })
    for (const path of ['/healthz', '/readyz']) expect((await worker.get(path)).status).toBe(200)
    const metrics = await worker.get('/metrics', { authorization: 'Bearer 0123456789abcdef' })
    expect(metrics.text).toContain('errand_')
    const key = { 'x-svc-api-key': api.key }
    for (const path of ['/v1beta/interactions', '/v1beta/server', '/docs', '/console', '/openapi.json']) {
      expect((await worker.get(path, key)).status, path).toBe(404)
    }
    expect(worker.output()).not.toContain('errand_sk_')
  })

  test('the command line works on the shared database', async () => {
    const api = await start('api')
    const made = await api.errand(['keys', 'create', '--name', 'second', '--project', 'other'])
    expect(made.code, made.stderr).toBe(0)
    const header = { 'x-svc-api-key': made.stdout.trim() }
    expect((await api.get('/v1beta/interactions', header)).status).toBe(200)
    expect((await api.errand(['settings', 'set', 'experimental.managedAgents', 'off'])).code).toBe(0)
    expect((await api.get('/v1beta/interactions', header)).status).toBe(403)
    expect((await api.errand(['settings', 'set', 'experimental.managedAgents', 'on'])).code).toBe(0)
    const listed = await api.errand(['keys', 'list'])
    const id = listed.stdout
      .split('\n')
      .find((line) => line.includes('second'))!
      .split(/\s+/)[0]!
    expect((await api.errand(['keys', 'revoke', id])).code).toBe(0)
    expect((await api.get('/v1beta/interactions', header)).status).toBe(401)
    const agents = await api.errand(['agents', 'list'])
    expect(agents.code, agents.stderr).toBe(0)
  })
})
