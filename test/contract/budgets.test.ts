/**
 * Checks the budget of a project: who may set it, which alerts are recorded, which runs are refused and which are
 * stopped.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { comeIn, firstOwner, invite, type Member, tokenOf } from '../support/visitor.ts'
import { checkEnded, createGate, ended, ROOMY, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
/** Cost of one model call: 10 input and 5 output tokens, at 30,000 and 250,000 US dollars per million. */
const CALL = 1.55
const METRICS = 'a-key-for-metrics-alone'

let provider: FakeProvider
let server: Server
let owner: Member
/** API path of the project that the current test uses. */
let project: string
let headers: Record<string, string>

beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' }
  const models = { 'svc-3.5-flash': { ...model, price: { input: 30_000, output: 250_000 } } }
  server = await startServer({
    config: { models, limits: { ...ROOMY, runningPerProject: 2 }, metrics: { key: METRICS } },
  })
  owner = await firstOwner(server)
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})
let projects = 0
beforeEach(async () => {
  provider.reset()
  provider.when('[hi]', () => ({ text: 'Hi.' }))
  const made = await owner.post(`${owner.account}/projects`, { name: `budget ${++projects}` })
  project = `/console/api/projects/${made.body.id}`
  const key = await owner.post(`${project}/keys`, { name: 'runs' })
  headers = { 'x-svc-api-key': key.body.key }
})

const run = (fields: object = {}) => server.post(PATH, { instruction: '[hi]', ...fields }, headers)
const begin = async (instruction: string) => (await run({ instruction, background: true })).body.interactionId as string
const end = (id: string) => ended(server, id, headers['x-svc-api-key'])
async function set(budget: object, who: Member = owner) {
  return who.call('PUT', `${project}/budget`, budget)
}
/** Returns the first refusal. The server's view of the budget can be one second old, so this repeats the call. */
const refused = () =>
  until(async () => {
    const answer = await run()
    return answer.status !== 200 && answer
  })
// biome-ignore lint/suspicious/noExplicitAny: a test looks into what is answered.
async function told(): Promise<any[]> {
  const { body } = await owner.get(`${owner.account}/audit?pageSize=100`)
  const id = project.split('/').at(-1)
  return body.entries.filter((entry: { target: string }) => entry.target === id)
}

describe('a budget', () => {
  it('is absent until it is set, and shows how much was spent', async () => {
    await run()
    const none = { monthlyCost: null, alertAt: [], hardStop: false, state: 'none' }
    expect((await owner.get(`${project}/budget`)).body).toEqual({ ...none, spent: { amount: '1.55', currency: 'USD' } })
    const given = { monthlyCost: '100.5', alertAt: [50, 80], hardStop: true }
    expect((await set({ ...given, monthlyCost: '100.50' })).body).toMatchObject({ ...given, state: 'ok' })
    expect((await owner.get(`${project}/budget`)).body).toMatchObject(given)
    expect((await set({ monthlyCost: null })).body).toMatchObject(none)
    expect((await told()).slice(0, 2)).toMatchObject([
      { action: 'budget.changed', details: { monthlyCost: 'none' } },
      { action: 'budget.changed', details: { monthlyCost: '100.5', alertAt: '50, 80', hardStop: 'true' } },
    ])
  })

  it('can be set by owners, read by all members, and seen by nobody else', async () => {
    const [developer, viewer] = [await invite(server, owner, 'developer'), await invite(server, owner, 'viewer')]
    expect(errorOf(await set({ monthlyCost: '1' }, developer))).toMatchObject({
      status: 403,
      code: 'permission_denied',
    })
    expect((await viewer.get(`${project}/budget`)).status).toBe(200)
    await server.errand(['accounts', 'create', `elsewhere ${projects}`])
    const { stdout } = await server.errand(['console', 'link', '--account', `elsewhere ${projects}`])
    const stranger = await comeIn(server, tokenOf(stdout.trim()), 'stranger@example.org')
    expect((await stranger.get(`${project}/budget`)).status).toBe(404)
    expect((await set({ monthlyCost: '1' }, stranger)).status).toBe(404)
  })

  it.each([
    ['monthlyCost', {}],
    ['monthlyCost', { monthlyCost: '-1' }],
    ['monthlyCost', { monthlyCost: '1e3' }],
    ['monthlyCost', { monthlyCost: 5 }],
    ['alertAt[0]', { monthlyCost: '1', alertAt: [0] }],
    ['hardStop', { monthlyCost: '1', hardStop: 'yes' }],
  ])('refuses an invalid `%s`: %j', async (param, body) => {
    expect(errorOf(await set(body))).toMatchObject({ status: 400, param })
  })
})

describe('when the budget is spent', () => {
  it('new interactions are refused until the budget is raised, and each threshold is recorded once', async () => {
    await set({ monthlyCost: '3', alertAt: [50, 90], hardStop: true })
    const first = await run()
    expect(first.status, first.text).toBe(200)
    await until(async () => (await told())[0].action === 'budget.alert')
    expect((await owner.get(`${project}/budget`)).body.state).toBe('alert')
    await run()
    const error = errorOf(await refused())
    await until(async () => (await told())[0].action === 'budget.exceeded')
    expect(error).toMatchObject({ status: 403, code: 'budget_exceeded', retryable: false })
    expect(error.message).toContain('An owner of its account can raise it')
    expect((await owner.get(`${project}/budget`)).body).toMatchObject({ state: 'exceeded', spent: { amount: '3.1' } })
    expect((await told()).map(({ action, details }) => [action, details.percent]).slice(0, 3)).toEqual([
      ['budget.exceeded', '100'],
      ['budget.alert', '90'],
      ['budget.alert', '50'],
    ])
    const { text } = await server.get('/metrics', { authorization: `Bearer ${METRICS}` })
    expect(text).toMatch(/errand_budgets_passed_total\{state="alert"\} [1-9]/)
    expect(text).toMatch(/errand_budgets_passed_total\{state="exceeded"\} [1-9]/)
    expect(server.output()).toContain('a part of a budget is spent')
    // The interactions that ran can still be read.
    expect((await server.get(`${PATH}/${first.body.id}`, headers)).status).toBe(200)
    await set({ monthlyCost: '100', alertAt: [3], hardStop: true })
    expect((await run()).status).toBe(200)
    await until(async () => (await told())[0].details.percent === '3')
    expect(
      (await told()).filter(({ details }) => details.percent !== undefined).map(({ details }) => details.percent),
    ).toEqual(['3', '100', '90', '50'])
  })

  it('a repeated request returns its existing interaction, and other projects are not affected', async () => {
    const again = { ...headers, 'idempotency-key': 'once' }
    const body = { instruction: '[hi]' }
    const first = await server.post(PATH, body, again)
    await set({ monthlyCost: '1', hardStop: true })
    await refused()
    expect((await server.post(PATH, body, again)).body.id).toBe(first.body.id)
    expect((await server.post(PATH, body)).status).toBe(200)
  })

  it('nothing is refused without a hard stop', async () => {
    await set({ monthlyCost: '1' })
    await run()
    await until(async () => (await told())[0].action === 'budget.exceeded')
    expect((await run()).status).toBe(200)
  })

  it('a run stops before its next model call and keeps its output so far', async () => {
    const call = { name: 'code_execution', args: { code: '1' } }
    provider.when('[goes on]', () => ({ toolCalls: [call] }))
    await set({ monthlyCost: String(1.5 * CALL), hardStop: true })
    const { body } = await run({ instruction: '[goes on]', tools: ['code_execution'] })
    expect(body).toMatchObject({ status: 'completed', stopReason: 'budget_exceeded', usage: { model_calls: 2 } })
    expect(Number(body.usage.cost.amount)).toBeCloseTo(2 * CALL)
    await checkEnded(server, body.id, undefined, headers['x-svc-api-key'])
  })

  it('a model that is streaming is cut off when other runs have spent the budget', async () => {
    provider.when('[speaks]', () => ({ text: Array.from({ length: 3_000 }, (_, i) => `${i} `), delayMs: 20 }))
    const speaking = await begin('[speaks]')
    await until(async () => (await server.get(`${PATH}/${speaking}`, headers)).body.output !== '')
    await run()
    await set({ monthlyCost: '0.01', hardStop: true })
    const { interaction } = await end(speaking).then(() =>
      checkEnded(server, speaking, undefined, headers['x-svc-api-key']),
    )
    expect(interaction).toMatchObject({ status: 'completed', stopReason: 'budget_exceeded' })
    expect(interaction.output).not.toContain('2999')
  })

  it('a queued run fails without a model call', async () => {
    const gate = createGate()
    provider.when('[held]', () => ({ text: 'Done.', hold: gate.opened }))
    const held = [await begin('[held]'), await begin('[held]')]
    const waiting = await begin('[hi]')
    await set({ monthlyCost: '0.01', hardStop: true })
    gate.open()
    for (const id of held) await end(id)
    expect(await end(waiting)).toMatchObject({
      status: 'failed',
      error: { code: 'budget_exceeded', status: 403, retryable: false },
      usage: { model_calls: 0 },
    })
  })
})
