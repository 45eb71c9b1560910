/** Runs every scenario of the table in every client. All clients must return the same result. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ROOMY, until } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { skillText, zip } from '../support/zip.ts'
import { onRuntimes } from './runtimes.ts'
import { HOSTILE_NAMES, SCENARIOS } from './scenarios.ts'
import { openUnreliableProxy, type UnreliableProxy } from './unreliable-proxy.ts'

const ROOT = new URL('../../clients/', import.meta.url).pathname
const SCENARIO = join(ROOT, 'typescript/test/scenario.ts')
const CLIENTS: Record<string, readonly string[]> = {
  TypeScript: [process.execPath, SCENARIO],
  Python: ['/usr/bin/python3', join(ROOT, 'python/tests/scenario.py'), 'sync'],
  'Python, asyncio': ['/usr/bin/python3', join(ROOT, 'python/tests/scenario.py'), 'async'],
}

/** A server with a scripted model behind an unreliable proxy. Each client has one of its own, so that all of them run at once. */
interface World {
  readonly provider: FakeProvider
  readonly dataDir: string
  readonly proxy: UnreliableProxy
  server: Server
}

async function openWorld(): Promise<World> {
  const provider = await openFakeProvider()
  const dataDir = await mkdtemp(join(tmpdir(), 'errand-clients-'))
  const server = await start({ provider, dataDir })
  await server.post('/v1beta/agents', { id: 'analyst' })
  return { provider, dataDir, server, proxy: await openUnreliableProxy(server.url) }
}

async function closeWorld(world: World | undefined): Promise<void> {
  await world?.proxy.close()
  await world?.server.stop()
  await world?.provider.close()
  if (world) await rm(world.dataDir, { recursive: true, force: true })
}

function start({ provider, dataDir }: Pick<World, 'provider' | 'dataDir'>, key?: string): Promise<Server> {
  const limits = { ...ROOMY, runningPerProject: 100 }
  return startServer({ provider, dataDir, config: { limits }, env: { ERRAND_LEASE_S: '1' }, ...(key && { key }) })
}

const code = (text: string) => ({ toolCalls: [{ name: 'code_execution', args: { code: text } }] })

async function reset({ provider, server, proxy }: World): Promise<void> {
  proxy.reset()
  proxy.target = server.url
  provider.reset()
  scriptModel(provider)
  for (const { id } of (await server.get('/v1beta/agents?pageSize=100')).body.agents) {
    if (id !== 'analyst') await server.request('DELETE', `/v1beta/agents/${id}`)
  }
  for (const { id, status } of (await server.get('/v1beta/interactions?pageSize=100')).body.interactions) {
    if (status === 'running') await server.post(`/v1beta/interactions/${id}:cancel`)
    await server.request('DELETE', `/v1beta/interactions/${id}`)
  }
}

function scriptModel(provider: FakeProvider): void {
  provider.when('[speaks]', { text: ['Hello, ', 'world.'] })
  provider.when('[works]', { reasoning: 'Well.', ...code('print(6 * 7)') }, { text: ['It is ', '42.'] })
  provider.when(
    '[slow tool]',
    { reasoning: 'Well.', ...code('import time; time.sleep(3); print("awake")') },
    { text: 'Awake.' },
  )
  provider.when('[fails]', { fault: 'status:400' })
  let tries = 0
  // The first run fails: the server tries a call three times.
  provider.when('[flaky]', () => (++tries > 3 ? { text: ['Hello, ', 'world.'] } : { fault: 'status:503' }))
  provider.when('[silent]', { fault: 'stall' })
  const copy = 'import shutil\nshutil.copy("in.bin", "outputs/out.bin")\nshutil.copy("in.txt", "outputs/out.txt")'
  provider.when('[copies]', code(copy), { text: 'Done.' })
  provider.when('[writes]', code('open("outputs/a.txt", "w").write("written")'), { text: 'Done.' })
  const save = 'import os\nos.makedirs("outputs/b/c")\nopen("outputs/a.txt", "w").write("flat")'
  provider.when('[saves]', code(`${save}\nopen("outputs/b/c/d.txt", "w").write("deep")`), { text: 'Done.' })
}

/** Runs a scenario in the client's program and returns the JSON that it printed. */
async function play({ proxy, server }: World, [program, ...args]: readonly string[], name: string): Promise<unknown> {
  const payload = JSON.stringify({ type: 'interaction.completed', timestamp: '2026-05-20T09:30:00.000Z', data: {} })
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const at = new Date()
  const headers = {
    'webhook-id': 'int_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': `v1,bm9uZQ== ${new Webhook(secret).sign('int_1', at, payload)}`,
  }
  const child = spawn(program!, [...args, name], {
    env: {
      PATH: process.env.PATH,
      NO_COLOR: '1',
      NODE_COMPILE_CACHE: join(ROOT, '../node_modules/.cache/errand'),
      ERRAND_BASE_URL: proxy.url,
      ERRAND_API_KEY: server.key,
      SKILL_ZIP: zip([{ name: 'SKILL.md', data: skillText('greeting', 'Greets.') }]).toString('base64'),
      HOSTILE_NAMES: JSON.stringify(HOSTILE_NAMES),
      WEBHOOK: JSON.stringify({ payload, headers, secret }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text))
  const exit = await new Promise((resolve) => child.once('close', resolve))
  expect(exit, stderr).toBe(0)
  return JSON.parse(stdout)
}

/** Replaces each matcher in `expected` by the actual value, if that matches. */
function fitted(expected: unknown, value: unknown): unknown {
  if (typeof expected !== 'object' || expected === null || Array.isArray(expected)) return expected
  // biome-ignore lint/suspicious/noExplicitAny: the table is written by hand.
  const rule = expected as Record<string, any>
  const list = Array.isArray(value) ? value : []
  if ('holds' in rule) return (rule.holds as string[]).every((name) => list.includes(name)) ? value : rule.holds
  if ('gapless' in rule) return list.length > 0 ? list.map((_, i) => i + 1) : 'a list'
  if ('from' in rule) return list.length > 0 ? list.map((_, i) => rule.from + i) : 'a list'
  if ('matches' in rule) return rule.matches.test(value) ? value : String(rule.matches)
  if ('above' in rule) return typeof value === 'number' && value > rule.above ? value : `above ${rule.above}`
  if ('in' in rule) return (rule.in as unknown[]).includes(value) ? value : rule.in
  const parts = value as Record<string, unknown> | undefined
  return Object.fromEntries(Object.entries(rule).map(([key, part]) => [key, fitted(part, parts?.[key])]))
}

/** Scenarios that depend on the runtime: streams, bodies, aborts, timeouts, cryptography. */
const TOUCHES_RUNTIME =
  /^(stream|stream-cut|create-cut|answer-cut|retry-429|time-out|abort-goes-on|abort-cancels|leave-loop|files|save|file-corrupt|skills|webhook)$/
const RUNTIMES = Object.fromEntries(
  Object.entries(await onRuntimes(SCENARIO)).map(([name, command]) => [`TypeScript, on ${name}`, command]),
)

// The clients run at once, as most of their scenarios wait for retries; the scenarios of one client run in order.
describe.concurrent.each(Object.entries({ ...CLIENTS, ...RUNTIMES }))('the client in %s', (client, command) => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => closeWorld(world))
  beforeEach(() => reset(world))

  const played = Object.entries(SCENARIOS).filter(([name]) => client in CLIENTS || TOUCHES_RUNTIME.test(name))
  describe('plays', { concurrent: false }, () => {
    it.each(played)('%s', async (name, { plans = [], result, requests, interactions }) => {
      world.proxy.plan(...plans)
      const played = play(world, command, name)
      if (name === 'restart') await restart(world)
      const value = await played
      expect(value).toEqual(fitted(result, value))
      if (requests) expect(world.proxy.requests).toEqual(requests)
      if (interactions) {
        const { body } = await world.server.get('/v1beta/interactions?pageSize=100')
        const [text, count] = interactions
        const found = body.interactions.filter(({ instruction }: { instruction: string }) => instruction.includes(text))
        expect(found).toHaveLength(count)
      }
    })
  })
})

/** Kills the server (`kill -9`) while the tool runs and starts a new one, on another port, on the same data. */
async function restart(world: World): Promise<void> {
  await until(async () => {
    const { body } = await world.server.get('/v1beta/interactions')
    const [run] = body.interactions
    return (
      run &&
      (await world.server.get(`/v1beta/interactions/${run.id}`)).body.executionTrace.some(
        ({ type }: { type: string }) => type === 'tool_call',
      )
    )
  })
  await world.server.stop('SIGKILL')
  world.server = await start(world, world.server.key)
  world.proxy.target = world.server.url
}
