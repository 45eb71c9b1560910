/**
 * Runs that wait for approval are parked: they use no worker slot and do not count as running in their project. A
 * parked run keeps its sandbox, and continues after the decision.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkEnded, ended, ROOMY, until } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { type FakeMcp, openFakeMcp } from './fake-mcp.ts'

const SLOTS = 4
const PATH = '/v1beta/interactions'

let provider: FakeProvider
let mcp: FakeMcp
let dataDir: string
let server: Server
beforeEach(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = [{ name: 'remove' }]
  provider.when('[parks]', REMOVE, { text: 'Done.' })
  provider.when('[plain]', { text: 'Done.' })
  dataDir = await mkdtemp(join(tmpdir(), 'errand-parked-'))
  server = await start()
})
afterEach(async () => {
  await server?.stop()
  await Promise.all([mcp.close(), provider.close()])
  await rm(dataDir, { recursive: true, force: true })
})

const REMOVE = { toolCalls: [{ name: 'files__remove', args: { path: 'a' } }] }

function start(key?: string): Promise<Server> {
  const limits = { ...ROOMY, runningPerProject: SLOTS }
  const config = { workerSlots: SLOTS, limits, egress: { allowPrivate: [mcp.address] } }
  return startServer({ provider, dataDir, config, env: { ERRAND_LEASE_S: '1' }, ...(key !== undefined && { key }) })
}

async function begin(instruction: string, fields: object = {}): Promise<string> {
  const body = {
    instruction,
    background: true,
    mcp: [{ name: 'files', url: mcp.url, requireApproval: true }],
    ...fields,
  }
  const answer = await server.post(PATH, body)
  expect(answer.status).toBe(200)
  return answer.body.id
}

/**
 * Resolves when the run has reported `requires_action` for the nth time. Each worker that claims the run reports it
 * again.
 */
async function parked(id: string, times = 1): Promise<void> {
  const stream = await server.stream(`${PATH}/${id}:stream`)
  let seen = 0
  for await (const { event, data } of stream.events) {
    if (event === 'stage' && data.stage === 'requires_action' && ++seen === times) break
  }
  stream.drop()
}

async function beginParked(count: number, fields: object = {}): Promise<string[]> {
  const ids = await Promise.all(Array.from({ length: count }, () => begin('[parks]', fields)))
  for (const id of ids) await parked(id)
  return ids
}

/** Runs a new interaction to its end. */
async function expectRoom() {
  const answer = await server.post(PATH, { instruction: '[plain]' })
  expect(answer.body).toMatchObject({ status: 'completed', output: 'Done.' })
}

async function expectDone(id: string) {
  await ended(server, id)
  const { interaction } = await checkEnded(server, id)
  expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
}

test('fifty parked runs leave slots for new runs, and each continues after its decision', async () => {
  const ids = await beginParked(50)
  await expectRoom()
  await Promise.all(ids.map((id) => server.post(`${PATH}/${id}:approve`)))
  for (const id of ids) await expectDone(id)
  expect(mcp.calls()).toHaveLength(50)
  await expectRoom()
})

test('parked runs stay parked after repeated kill -9, and after SIGTERM, which does not wait for them', async () => {
  const ids = await beginParked(5)
  for (const [i, signal] of (['SIGKILL', 'SIGKILL', 'SIGKILL', 'SIGKILL', 'SIGTERM'] as const).entries()) {
    await server.stop(signal)
    server = await start(server.key)
    for (const id of ids) await parked(id, i + 2)
    await expectRoom()
  }
  await Promise.all(ids.map((id) => server.post(`${PATH}/${id}:approve`)))
  for (const id of ids) await expectDone(id)
  expect(mcp.calls()).toHaveLength(5)
})

test('a parked run keeps its sandbox and the files in it', async () => {
  const write = { toolCalls: [{ name: 'code_execution', args: { code: 'kept = 42' } }] }
  const read = { toolCalls: [{ name: 'code_execution', args: { code: 'print(kept)' } }] }
  provider.when('[works]', write, REMOVE, read, { text: 'Done.' })
  const id = await begin('[works]', { tools: ['code_execution'] })
  await parked(id)
  await expectRoom()
  await server.post(`${PATH}/${id}:approve`)
  await ended(server, id)
  const { interaction } = await checkEnded(server, id)
  expect(interaction.executionTrace.at(-1)).toMatchObject({ type: 'tool_result', output: '42' })
})

test('a parked run can be cancelled and can time out while all slots are taken', async () => {
  const [cancelled, late] = [await beginParked(1), await beginParked(1, { policy: { maxTurnDuration: 3 } })].flat()
  provider.when('[holds]', { fault: 'stall' })
  const busy = await Promise.all(Array.from({ length: SLOTS }, () => begin('[holds]')))
  await until(() => provider.requests.filter(({ body }) => JSON.stringify(body).includes('[holds]')).length === SLOTS)
  expect((await server.post(`${PATH}/${cancelled}:cancel`)).body.status).toBe('cancelled')
  expect(errorOf(await server.post(`${PATH}/${cancelled}:approve`)).code).toBe('conflict')
  // Decided while no slot is free.
  expect((await server.post(`${PATH}/${late}:approve`)).status).toBe(200)
  expect(await ended(server, late!)).toMatchObject({ status: 'failed', error: { code: 'deadline_exceeded' } })
  for (const id of [cancelled!, late!]) await checkEnded(server, id)
  expect(mcp.calls()).toEqual([])
  for (const id of busy) await server.post(`${PATH}/${id}:cancel`)
})
