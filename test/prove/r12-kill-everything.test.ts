/**
 * R12: kill -9 of the server and its sandbox host with twenty open sandboxes, each with background processes. After the
 * next start no sandbox, directory, mount or control group is left, and each run ends. The same holds for sandboxes of
 * runs that were canceled on another node while their own node was down.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended, ROOMY, until } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { cgroupsOf, hostPid, scratchOf } from '../sandbox/fixture.ts'
import { onPostgres } from '../store/backends.ts'
import { processesWith, stubbornTree } from '../support/processes.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

const SANDBOXES = rounds(20, 6)
const ROUNDS = rounds(5, 1)
const PATH = '/v1beta/interactions'

let provider: FakeProvider
let dataDir: string
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  dataDir = await mkdtemp(join(tmpdir(), 'errand-r12-'))
})
afterAll(async () => {
  await provider?.close()
  await rm(dataDir, { recursive: true, force: true })
})

interface Start {
  readonly database?: string
  readonly role?: string
  readonly key?: string
  readonly dir?: string
}

function start({ database, role = 'all', key, dir = dataDir }: Start = {}): Promise<Server> {
  const config = { limits: { ...ROOMY, runningPerProject: 100 }, sandbox: { pool: 2, memoryMiB: 256 } }
  const env = { ERRAND_LEASE_S: '1', ERRAND_ROLE: role }
  return startServer({ provider, dataDir: dir, database, config, env, ...(key !== undefined && { key }) })
}

/** Starts runs whose code never ends. Resolves when the code of all of them is running. */
async function beginStubborn(server: Server, mark: string): Promise<string[]> {
  provider.when(
    `[${mark}]`,
    { toolCalls: [{ name: 'code_execution', args: { code: stubbornTree(mark) } }] },
    { text: 'Done.' },
  )
  const body = { instruction: `[${mark}]`, tools: ['code_execution'], background: true }
  const answers = await Promise.all(Array.from({ length: SANDBOXES }, () => server.post(PATH, body)))
  const ids: string[] = answers.map((answer) => answer.body.interactionId)
  for (const id of ids) {
    const stream = await server.stream(`${PATH}/${id}:stream`)
    for await (const { event } of stream.events) if (event === 'tool_output') break
    stream.drop()
  }
  return ids
}

/** Checks that no sandbox of a run is left. Warm sandboxes of the pool do not count. */
async function expectNothingLeft(mark: string): Promise<void> {
  await until(async () => (await processesWith(mark)).length === 0)
}

function expectNothingAtAll(): void {
  const scratch = scratchOf(dataDir)
  expect(existsSync(scratch)).toBe(false)
  expect(cgroupsOf(dataDir) ?? []).toEqual([])
  const mounts = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => (existsSync(`/proc/${pid}/mountinfo`) ? readMounts(pid) : []))
  expect(mounts.filter((line) => line.includes(scratch))).toEqual([])
}

function readMounts(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n')
  } catch {
    return [] // The process has ended.
  }
}

test('after kill -9 of everything the next start removes all sandboxes, and each run ends', {
  timeout: ROUNDS * 120_000,
}, async () => {
  let server = await start()
  let slowest = 0
  for (let round = 0; round < ROUNDS; round++) {
    const mark = `mark-${randomUUID()}`
    const ids = await beginStubborn(server, mark)
    process.kill(hostPid(dataDir), 'SIGKILL')
    await server.stop('SIGKILL')
    server = await start({ key: server.key })
    const startedAt = performance.now()
    await expectNothingLeft(mark)
    slowest = Math.max(slowest, performance.now() - startedAt)
    for (const id of ids) {
      await ended(server, id)
      const { interaction } = await checkEnded(server, id)
      expect(interaction).toMatchObject({ status: 'completed', output: 'Done.' })
      expect(interaction.executionTrace.at(-1).output).toContain('outcome is unknown')
    }
  }
  await server.stop()
  expectNothingAtAll()
  figure('R12', `kill -9 of server and host with ${SANDBOXES} sandboxes open: left behind, in ${ROUNDS} rounds`, 0)
  expect(slowest).toBeLessThan(30_000)
  figure('R12', 'processes gone after the next start, s', (slowest / 1_000).toFixed(1))
})

onPostgres('cancelled on another node', (cluster) => {
  test('a run that is canceled while its node is down loses its sandbox when the node is back', async () => {
    const database = await cluster().createDatabase()
    const apiDir = await mkdtemp(join(tmpdir(), 'errand-r12-api-'))
    const api = await start({ database, role: 'api', dir: apiDir })
    let worker = await start({ database, role: 'worker', key: 'none' })
    const mark = `mark-${randomUUID()}`
    const ids = await beginStubborn(api, mark)
    // The sandbox host and its sandboxes outlive the server.
    await worker.stop('SIGKILL')
    for (const id of ids) expect((await api.post(`${PATH}/${id}:cancel`)).status).toBe(200)
    worker = await start({ database, role: 'worker', key: 'none' })
    await expectNothingLeft(mark)
    for (const id of ids) expect((await checkEnded(api, id)).interaction.status).toBe('cancelled')
    await worker.stop()
    await api.stop()
    expectNothingAtAll()
    await rm(apiDir, { recursive: true })
  })
})
