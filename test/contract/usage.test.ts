/**
 * Checks the usage that an account's members read: each ended interaction is counted once, whatever its outcome, and
 * only in its own account.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { comeIn, firstOwner, invite, type Member, tokenOf } from '../support/visitor.ts'
import { ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const today = () => new Date().toISOString().slice(0, 10)

let dataDir: string
let provider: FakeProvider
let server: Server
let owner: Member
let viewer: Member
let stranger: Member
/** The interactions as the API returned them at their end. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into what is answered.
const told: any[] = []

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'errand-usage-'))
  provider = await openFakeProvider()
  provider.when('[hi]', () => ({ text: 'Hi.' }))
  provider.when('[broken]', () => ({ fault: 'status:400' }))
  provider.when('[held]', () => ({ fault: 'stall' }))
  server = await start()
  await runAll()
  owner = await firstOwner(server)
  viewer = await invite(server, owner, 'viewer')
  await server.errand(['accounts', 'create', 'elsewhere'])
  const { stdout } = await server.errand(['console', 'link', '--account', 'elsewhere'])
  stranger = await comeIn(server, tokenOf(stdout.trim()), 'stranger@example.org')
}, 120_000)
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(dataDir, { recursive: true, force: true })
})

function start(key?: string): Promise<Server> {
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' }
  const models = {
    'svc-3.5-flash': { ...model, price: { input: 0.3, output: 2.5 } },
    plain: model,
  }
  const config = { models, limits: ROOMY }
  return startServer({ dataDir, config, env: { ERRAND_LEASE_S: '1' }, ...(key !== undefined && { key }) })
}

async function runAll(): Promise<void> {
  await server.post('/v1beta/agents', { id: 'greeter', displayName: 'Greeter' })
  const other = { 'x-svc-api-key': await server.createKey('other') }
  const done = await Promise.all([
    server.post(PATH, { instruction: '[hi]', agentId: 'greeter' }),
    server.post(PATH, { instruction: '[hi]', model: 'plain' }),
    server.post(PATH, { instruction: '[hi]' }, other),
  ])
  for (const { body } of done) told.push(body)
  const failed = await server.post(PATH, { instruction: '[broken]', agentId: 'greeter', background: true })
  told.push(await ended(server, failed.body.interactionId))
  const held = async () => {
    const { body } = await server.post(PATH, { instruction: '[held]', background: true })
    await until(() => provider.requests.some(({ body: asked }) => JSON.stringify(asked.messages).includes('[held]')))
    return body.interactionId as string
  }
  const cancelled = await held()
  await server.post(`${PATH}/${cancelled}:cancel`)
  told.push(await ended(server, cancelled))
  // This run survives a SIGKILL and ends on the next server.
  const survivor = await held()
  await server.stop('SIGKILL')
  server = await start(server.key)
  await server.post(`${PATH}/${survivor}:cancel`)
  told.push(await ended(server, survivor))
}

const sum = (figure: (interaction: (typeof told)[number]) => number) =>
  told.reduce((total, interaction) => total + figure(interaction), 0)

const read = async (query = '', who: Pick<Member, 'get' | 'account'> = owner) =>
  (await who.get(`${owner.account}/usage${query}`)) as Awaited<ReturnType<Member['get']>>

describe('usage', () => {
  it('is the sum over all ended interactions, also after a SIGKILL', async () => {
    const { status, body } = await read()
    expect(status, JSON.stringify(body)).toBe(200)
    expect(body.total).toMatchObject({
      runs: told.length,
      failed: 1,
      cancelled: 2,
      inputTokens: sum(({ usage }) => usage.input_tokens),
      outputTokens: sum(({ usage }) => usage.output_tokens),
    })
    expect(Number(body.total.cost.amount)).toBeCloseTo(
      sum(({ usage }) => Number(usage.cost?.amount ?? 0)),
      9,
    )
    expect(Number(body.total.cost.amount)).toBeGreaterThan(0)
    expect(body.rows).toMatchObject([{ day: today(), runs: told.length }])
    expect(Date.parse(body.to) - Date.parse(body.from)).toBe(29 * 86_400_000)
    const longest = Math.max(...told.map(({ usage }) => usage.duration_ms))
    expect(Math.abs(body.total.latencyMs.p99 - longest) / longest).toBeLessThan(0.1)
  })

  it('can be grouped and filtered by project, agent, model and key', async () => {
    const { rows } = (await read('?group=project,model')).body
    const projects = rows.map((row: { projectName: string; model: string; runs: number }) => [
      row.projectName,
      row.model,
      row.runs,
    ])
    expect(projects.sort()).toEqual([
      ['default', 'plain', 1],
      ['default', 'svc-3.5-flash', 4],
      ['other', 'svc-3.5-flash', 1],
    ])
    const agents = (await read(`?group=agent&projectId=${owner.projectId}`)).body
    expect(agents.total.runs).toBe(5)
    expect(agents.rows).toMatchObject([
      { agentId: null, runs: 3 },
      { agentId: 'greeter', runs: 2, failed: 1 },
    ])
    const keys = (await read('?group=key&agentId=greeter')).body
    expect(keys.rows).toMatchObject([{ keyName: 'first key', runs: 2 }])
    expect((await read('?model=plain')).body.total).toMatchObject({ runs: 1, cost: { amount: '0', currency: 'USD' } })
    expect((await read('?keyId=key_none')).body).toMatchObject({
      rows: [],
      total: { runs: 0, latencyMs: { p50: null } },
    })
    expect((await read('?to=2020-01-31&from=2020-01-01')).body.rows).toEqual([])
  })

  it('lists a run from the console under its user', async () => {
    const headers = { 'x-errand-project': owner.projectId }
    const { body } = await owner.post(PATH, { instruction: '[hi]', labels: { by: 'hand' } }, headers)
    told.push(body)
    const { rows } = (await read(`?group=key&keyId=${owner.userId}`)).body
    expect(rows).toMatchObject([{ keyId: owner.userId, keyName: 'owner', runs: 1 }])
  })

  it('can be exported as CSV without spreadsheet formulas in names', async () => {
    const key = await server.createKey('=1+1,"x"')
    told.push((await server.post(PATH, { instruction: '[hi]' }, { 'x-svc-api-key': key })).body)
    const { headers, text } = await read('?group=day,project&format=csv')
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(headers.get('content-disposition')).toMatch(
      /^attachment; filename="usage-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv"$/,
    )
    const [head, ...lines] = text.trim().split('\r\n')
    expect(head).toBe(
      'day,project_id,project,runs,failed,cancelled,input_tokens,output_tokens,cost_usd,latency_p50_ms,latency_p95_ms,latency_p99_ms',
    )
    expect(lines).toHaveLength(3)
    expect(text).toContain(`,"'=1+1,""x""",1,0,0,`)
    expect(lines[0]).toMatch(
      new RegExp(`^${today()},prj_\\w+,default,6,1,2,\\d+,\\d+,[\\d.]+,[\\d.]+,[\\d.]+,[\\d.]+$`),
    )
  })

  it('remains when interactions are deleted', async () => {
    for (const { id } of told) await server.request('DELETE', `${PATH}/${id}`)
    expect((await server.get(PATH)).body.interactions).toEqual([])
    expect((await read()).body.total.runs).toBe(told.length)
  })

  it('can be read by every member of the account, whatever their role, and by nobody else', async () => {
    expect((await read('', viewer)).status).toBe(200)
    expect(errorOf(await read('', stranger))).toMatchObject({ status: 404, code: 'not_found' })
    const theirs = await stranger.post(`${stranger.account}/projects`, { name: 'theirs' })
    expect(errorOf(await read(`?projectId=${theirs.body.id}`))).toMatchObject({ status: 404, code: 'not_found' })
    expect((await server.get(`${owner.account}/usage`)).status).toBe(401)
    expect((await stranger.get(`${stranger.account}/usage`)).body.total).toMatchObject({ runs: 0 })
  })

  it.each([
    ['from', 'from=yesterday'],
    ['from', 'from=2026-02-30'],
    ['to', 'from=2026-02-02&to=2026-02-01'],
    ['from', 'from=2024-01-01&to=2026-01-01'],
    ['group', 'group=day,day'],
    ['group', 'group=colour'],
    ['format', 'format=xml'],
  ])('refuses an invalid `%s`: %s', async (param, query) => {
    expect(errorOf(await read(`?${query}`))).toMatchObject({ status: 400, param })
  })
})
