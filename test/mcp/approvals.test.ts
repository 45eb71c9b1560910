/** Tool calls that require approval: approved, denied, after a crash, at the deadline, never run twice. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { checkEnded } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { type FakeMcp, openFakeMcp } from './fake-mcp.ts'

let provider: FakeProvider
let mcp: FakeMcp
let server: Server
const config = () => ({ egress: { allowPrivate: [mcp.address] } })
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = [
    { name: 'remove', annotations: { readOnlyHint: false } },
    { name: 'look', annotations: { readOnlyHint: true } },
  ]
  server = await startServer({ provider, config: config(), env: { ERRAND_LEASE_S: '2' } })
})
afterAll(async () => {
  await server?.stop()
  await mcp?.close()
  await provider?.close()
})
afterEach(() => {
  mcp.requests.length = 0
})

let runs = 0
/** Starts a run whose model calls `remove` and then repeats the result. */
async function start(
  rest: object = {},
  calls: { name: string; args: object }[] = [{ name: 'files__remove', args: { path: 'a' } }],
): Promise<string> {
  const marker = `[approval ${++runs}]`
  provider.when(marker, ...calls.map((call) => ({ toolCalls: [call] })), { text: 'Done.' })
  const { status, body } = await server.post('/v1beta/interactions', {
    instruction: marker,
    background: true,
    mcp: [{ name: 'files', url: mcp.url, requireApproval: true }],
    ...rest,
  })
  expect(status).toBe(200)
  return body.id
}

const path = (id: string) => `/v1beta/interactions/${id}`

async function waiting(id: string, at: Server = server) {
  await expect.poll(async () => (await at.get(path(id))).body.pendingApprovals, { timeout: 30_000 }).toHaveLength(1)
  return (await at.get(path(id))).body
}

async function ended(id: string, at: Server = server) {
  await expect.poll(async () => (await at.get(path(id))).body.status, { timeout: 30_000 }).not.toBe('running')
  return (await at.get(path(id))).body
}

const outputs = (body: { executionTrace: { type: string; output?: string }[] }) =>
  body.executionTrace.filter(({ type }) => type === 'tool_result').map(({ output }) => output)

describe('a call that needs approval', () => {
  it('waits in requires_action, and is made once after approval', async () => {
    const id = await start()
    const body = await waiting(id)
    expect(body).toMatchObject({ status: 'running', stage: 'requires_action' })
    expect(body.pendingApprovals).toEqual([{ step: 1, name: 'files__remove', args: { path: 'a' } }])
    expect(mcp.calls()).toEqual([])
    const approved = await server.post(`${path(id)}:approve`)
    expect(approved.status).toBe(200)
    expect(approved.body).not.toHaveProperty('pendingApprovals')
    const end = await ended(id)
    expect(end.status).toBe('completed')
    expect(outputs(end)).toEqual(['{"path":"a"}'])
    expect(mcp.calls()).toHaveLength(1)
    const { events } = await checkEnded(server, id)
    const names = events.map(({ event }) => event)
    expect(names.indexOf('approval_required')).toBeGreaterThan(names.indexOf('tool_call'))
    expect(names.indexOf('approval_decided')).toBeLessThan(names.indexOf('tool_result'))
    expect(events.find(({ event }) => event === 'approval_required')?.data).toEqual(body.pendingApprovals[0])
  })

  it('returns the denial and its reason to the model', async () => {
    const id = await start()
    await waiting(id)
    const { status } = await server.post(`${path(id)}/approve`, { step: 1, approve: false, reason: 'Not on a Friday.' })
    expect(status).toBe(200)
    expect(outputs(await ended(id))).toEqual([expect.stringContaining('Not on a Friday.')])
    expect(mcp.calls()).toEqual([])
  })

  it('accepts several decisions at once; each call waits for its own', async () => {
    const call = { name: 'files__remove', args: { path: 'a' } }
    const id = await start({}, [call, call])
    await waiting(id)
    await server.post(`${path(id)}:approve`, { decisions: [{ step: 1, approve: false }] })
    await expect.poll(async () => (await server.get(path(id))).body.pendingApprovals?.[0]?.step).toBe(3)
    await server.post(`${path(id)}:approve`, {})
    const end = await ended(id)
    expect(outputs(end)).toEqual([expect.stringContaining('not approved'), '{"path":"a"}'])
  })

  it('is decided once: repeating the decision succeeds, another decision is a conflict', async () => {
    const id = await start()
    await waiting(id)
    const yes = { step: 1, approve: true }
    const answers = await Promise.all([1, 2, 3].map(() => server.post(`${path(id)}:approve`, yes)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const no = await server.post(`${path(id)}:approve`, { step: 1, approve: false })
    expect(errorOf(no).code).toBe('conflict')
    await ended(id)
    expect(mcp.calls()).toHaveLength(1)
    expect(errorOf(await server.post(`${path(id)}:approve`)).code).toBe('conflict')
  })

  it('refuses decisions for calls that don’t wait, don’t exist, or belong to another project', async () => {
    const id = await start()
    await waiting(id)
    expect(errorOf(await server.post(`${path(id)}:approve`, { step: 9, approve: true })).code).toBe('conflict')
    expect(errorOf(await server.post(`${path(id)}:approve`, { step: 0 })).param).toBe('step')
    expect(errorOf(await server.post(`${path(id)}:approve`, { decisions: [] })).param).toBe('decisions')
    expect(errorOf(await server.post(`${path('int_nothing')}:approve`)).code).toBe('not_found')
    const stranger = { 'x-svc-api-key': await server.createKey('stranger') }
    expect(errorOf(await server.post(`${path(id)}:approve`, undefined, stranger)).code).toBe('not_found')
    expect((await server.post(`${path(id)}:cancel`)).body.status).toBe('cancelled')
    expect(errorOf(await server.post(`${path(id)}:approve`)).code).toBe('conflict')
    expect(mcp.calls()).toEqual([])
  })

  it('only the named tools require approval', async () => {
    const calls = [{ name: 'files__look', args: {} }]
    const id = await start({ mcp: [{ name: 'files', url: mcp.url, requireApproval: ['remove'] }] }, calls)
    expect((await ended(id)).status).toBe('completed')
    // The model's names are accepted as well.
    const other = await start({ mcp: [{ name: 'files', url: mcp.url, requireApproval: ['files__remove'] }] })
    await waiting(other)
    await server.post(`${path(other)}:approve`, { approve: false })
    await ended(other)
  })

  it('waits at most until the run’s deadline', async () => {
    const id = await start({ policy: { maxTurnDuration: 1 } })
    const end = await ended(id)
    expect(end).toMatchObject({ status: 'failed', error: { code: 'deadline_exceeded' } })
    expect(end).not.toHaveProperty('pendingApprovals')
    expect(mcp.calls()).toEqual([])
  })

  it('continues to wait after a crash, and applies a decision made meanwhile', async () => {
    const id = await start()
    await waiting(id)
    await server.stop('SIGKILL')
    const again = { provider, dataDir: server.dataDir, key: server.key, env: { ERRAND_LEASE_S: '1' } }
    server = await startServer(again)
    expect((await waiting(id)).stage).toBe('requires_action')
    expect((await server.post(`${path(id)}:approve`)).status).toBe(200)
    await server.stop('SIGKILL')
    server = await startServer(again)
    const end = await ended(id)
    expect(end.status).toBe('completed')
    expect(mcp.calls().length).toBeLessThanOrEqual(1)
    const { events } = await checkEnded(server, id)
    expect(events.filter(({ event }) => event === 'approval_required')).toHaveLength(1)
    expect(events.filter(({ event }) => event === 'approval_decided')).toHaveLength(1)
  })
})
