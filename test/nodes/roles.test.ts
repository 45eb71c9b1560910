/** Processes of each role on one Postgres: which endpoints they serve and what they need to start. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { firstOwner } from '../support/visitor.ts'
import { type Nodes, openNodes } from './start-nodes.ts'

onPostgres('roles', (cluster) => {
  let provider: FakeProvider
  let nodes: Nodes
  beforeAll(async () => {
    provider = await openFakeProvider()
  })
  afterAll(() => provider?.close())
  beforeEach(async () => {
    nodes = openNodes(provider, await cluster().createDatabase())
  })
  afterEach(() => nodes.close())

  test('an api node needs no sandbox host, and a worker executes its runs', async () => {
    const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', apiKeyEnv: 'MODEL_KEY' }
    const config = { models: { 'svc-3.5-flash': model } }
    // The api node's PATH has neither bubblewrap nor Python, and it has no model key.
    const api = await nodes.start('api', { config, env: { PATH: '/nowhere' } })
    const worker = await nodes.start('worker', { config, env: { MODEL_KEY: 'key-of-the-model' } })
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

  test('an api node reports the number of workers and their capabilities', async () => {
    const api = await nodes.start('api')
    const about = async () => (await api.get('/v1beta/server')).body
    expect(await about()).toMatchObject({
      sandbox: { enforced: [] },
      tools: { available: ['code_execution', 'file_read', 'file_write'] },
    })
    expect((await api.get('/readyz')).body).toEqual({ status: 'ready', workers: 0 })
    // Runs can use the capabilities that a worker detects on its machine.
    const worker = await nodes.start('worker')
    await expect.poll(async () => (await api.get('/readyz')).body.workers, { timeout: 30_000 }).toBe(1)
    const { sandbox, tools } = await about()
    expect(sandbox.enforced).not.toEqual([])
    expect(tools.available.includes('browser')).toBe(sandbox.browser)
    const doctor = await api.errand(['doctor'])
    expect(doctor.stdout).toContain('Node with the role worker')
    expect(await worker.stop()).toBe(0)
    await expect.poll(async () => (await api.get('/readyz')).body.workers, { timeout: 30_000 }).toBe(0)
    expect((await about()).sandbox.enforced).not.toEqual([])
  })

  test('if api nodes start at once on an empty database, one shows the first key and one the owner’s welcome link', async () => {
    // Each process waits for the key in its output, but only one of them prints it.
    const apis = await Promise.all([1, 2, 3].map(() => nodes.start('api', { key: 'shown by one of them' })))
    const shown = (what: RegExp) => apis.flatMap((api) => api.output().match(what) ?? [])
    await expect.poll(() => shown(/\/docs$/gm), { timeout: 30_000 }).toHaveLength(3)
    const keys = shown(/errand_sk_\w{38}/g)
    expect(new Set(keys).size).toBe(1)
    expect(new Set(shown(/\/console\/welcome#\w+/g)).size).toBe(1)
    expect(shown(/another node printed the link/g)).toHaveLength(2)
    for (const api of apis) expect((await api.get('/v1beta/agents', { 'x-svc-api-key': keys[0]! })).status).toBe(200)
  })

  test('an api node reports the health of each model on each worker', async () => {
    const api = await nodes.start('api')
    await Promise.all([nodes.start('worker'), nodes.start('worker')])
    const owner = await firstOwner(api)
    provider.when('[fails]', { fault: 'status:500' })
    await api.post('/v1beta/interactions', { instruction: '[fails]' })
    const states = async () => {
      const { body } = await owner.get('/console/api/models')
      const { health } = body.models.find(({ name }: { name: string }) => name === 'svc-3.5-flash')
      return health.map(({ state }: { state: string }) => state).sort()
    }
    await expect.poll(states, { timeout: 30_000 }).toEqual(['failing', 'untried'])
  })

  test('a worker serves health checks and metrics, and no API calls', async () => {
    const api = await nodes.start('api')
    const worker = await nodes.start('worker', { env: { ERRAND_METRICS_KEY: '0123456789abcdef' } })
    for (const path of ['/healthz', '/readyz']) expect((await worker.get(path)).status).toBe(200)
    const metrics = await worker.get('/metrics', { authorization: 'Bearer 0123456789abcdef' })
    expect(metrics.text).toContain('errand_')
    const key = { 'x-svc-api-key': api.key }
    for (const path of ['/v1beta/interactions', '/v1beta/server', '/docs', '/console', '/openapi.json']) {
      expect((await worker.get(path, key)).status, path).toBe(404)
    }
    expect(worker.output()).not.toContain('errand_sk_')
  })

  test('finds work by polling if LISTEN does not work, as behind a transaction pooler', async () => {
    const env = { ERRAND_DATABASE_LISTEN_URL: 'postgres:///direct?host=/nowhere' }
    const api = await nodes.start('api', { env })
    const worker = await nodes.start('worker', { env })
    provider.when('[slow]', { toolCalls: [{ name: 'code_execution', args: { code: 'import time; time.sleep(600)' } }] })
    provider.when('[quick]', { text: 'Done.' })
    const first = await api.post('/v1beta/interactions', { instruction: '[quick]' })
    expect(first.body).toMatchObject({ status: 'completed', output: 'Done.' })
    const slow = { instruction: '[slow]', background: true, tools: ['code_execution'] }
    const { id } = (await api.post('/v1beta/interactions', slow)).body
    const trace = async () => (await api.get(`/v1beta/interactions/${id}`)).body.executionTrace
    await expect.poll(trace, { timeout: 30_000 }).toHaveLength(1)
    expect((await api.post(`/v1beta/interactions/${id}:cancel`)).status).toBe(200)
    for (const node of [api, worker]) expect(node.output()).toContain('set databaseListenUrl')
  })

  test('the command line works on the shared database', async () => {
    const api = await nodes.start('api')
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
    const { stdout: examined } = await api.errand(['doctor'])
    expect(examined).toContain('Postgres, which keeps projects apart by row-level security')
    const agents = await api.errand(['agents', 'list'])
    expect(agents.code, agents.stderr).toBe(0)
  })
})
