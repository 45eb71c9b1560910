/**
 * R16, second half: clients that send requests to every documented route and never read the responses. A project's
 * pending responses stay within its limit, other projects are served at the same time, and a client that reads nothing
 * is disconnected.
 */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { addressIn, documentedRoutes, ownThings, type Route, type Things } from '../support/every-route.ts'
import { figure, rounds } from '../support/prove.ts'
import { BOUNDED_HEAP, type Server, startServer } from '../support/server.ts'
import { python } from '../support/tool-run.ts'
import { firstOwner, type Member } from '../support/visitor.ts'

const PATH = '/v1beta/interactions'
const MIB = 1024 * 1024
/** Connections to one route. */
const ASKING = rounds(100, 20)
/** Requests on each connection. */
const PIPELINED = 4
/** Size of an interaction and of its output file. Larger than the kernel's buffers for a connection. */
const LARGE_BYTES = 16 * MIB
const TURN_BYTES = 2 * MIB
/**
 * Maximum growth of memory: the limit on a project's pending responses (64 MiB), plus copies and the connections' own
 * memory.
 */
const MOST_GROWTH = 192 * MIB
/** 30 s in the full form; longer in the short form, which runs in parallel with other tests. */
const DROPPED_WITHIN_MS = rounds(30_000, 45_000)

let provider: FakeProvider
let server: Server
let clients: Clients
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  server = await startServer({ provider, config: { limits: { ...ROOMY, maxModelCalls: 100 } }, env: BOUNDED_HEAP })
  clients = openClients(Number(new URL(server.url).port))
})
afterAll(async () => {
  clients?.close()
  await server?.stop()
  await provider?.close()
})

interface Clients {
  /** Closes earlier connections and opens `count` new ones that send this request. Resolves with their ports. */
  ask(count: number, request: string): Promise<number[]>
  close(): void
}

function openClients(port: number): Clients {
  const script = new URL('../support/never_reads.py', import.meta.url).pathname
  const child = spawn('python3', [script, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    async ask(count, request) {
      child.stdin.write(`${JSON.stringify({ count, request })}\n`)
      return String((await lines.next()).value)
        .split(' ')
        .map(Number)
    },
    close: () => void child.stdin.end(),
  }
}

/** Number of connections that the server still has. Read from the kernel's table, because the clients never read. */
async function held(ports: readonly number[]): Promise<number> {
  const hex = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const ours = new Set(ports.map(hex))
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/))
  const own = hex(Number(new URL(server.url).port))
  const ESTABLISHED = '01'
  return rows.filter(
    ([, local = '', remote = '', state]) => local.endsWith(own) && ours.has(remote.slice(-5)) && state === ESTABLISHED,
  ).length
}

async function memory(): Promise<number> {
  const status = await readFile(`/proc/${server.process.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024
}

async function peakDuring(work: Promise<unknown>): Promise<number> {
  let over = false
  void work.finally(() => {
    over = true
  })
  let peak = 0
  while (!over) {
    peak = Math.max(peak, await memory())
    await sleep(20)
  }
  await work
  return peak
}

/** Waits until the server's memory has not grown for two seconds: all requests have been answered or refused. */
async function settled(): Promise<void> {
  for (let last = 0, now = await memory(); now > last + MIB; now = await memory()) {
    last = now
    await sleep(2_000)
  }
}

/** Creates a run with a large answer and a large output file. */
async function largeRun(): Promise<Awaited<ReturnType<Server['post']>>['body']> {
  const turn = { text: 'x'.repeat(TURN_BYTES), toolCalls: [{ name: 'nothing', args: {} }] }
  const writing = python(`open('outputs/large', 'wb').truncate(${LARGE_BYTES})`)
  const turns = Array.from({ length: LARGE_BYTES / TURN_BYTES }, () => turn)
  provider.when('[large]', { toolCalls: [writing] }, ...turns, { text: 'Done.' })
  const { body } = await server.post(PATH, {
    instruction: '[large]',
    tools: ['code_execution'],
    files: [{ name: 'in.txt', content: 'in' }],
    policy: { maxOutputTokens: 1_000_000 },
  })
  expect(body.status, JSON.stringify(body).slice(0, 300)).toBe('completed')
  return body
}

/** Every route with its address. Routes that end or remove something come last. */
async function everyRoute(things: Things): Promise<{ route: Route; address: string }[]> {
  const { body } = await server.get(`${PATH}/${things[PATH]!.id}`)
  const order = ['GET', 'HEAD', 'PUT', 'PATCH', 'POST', 'DELETE']
  const addressOf = ({ path, query }: Route) => {
    const [, kind] = /^\/v1beta\/(input-)?files\//.exec(path) ?? [undefined]
    if (!/^\/v1beta\/(input-)?files\//.test(path)) return addressIn(path, things) + query
    const { pathname, search } = new URL((kind ? body.resolved.files : body.files)[0].url)
    return pathname + search
  }
  return (await documentedRoutes(server))
    .map((route) => ({ route, address: addressOf(route) }))
    .sort((a, b) => order.indexOf(a.route.method) - order.indexOf(b.route.method))
}

/** The request as bytes. */
function wireOf({ method, scheme, type }: Route, address: string, owner: Member): string {
  const body = type === undefined ? '' : '{}'
  const signIn = scheme === 'apiKey' ? `x-svc-api-key: ${server.key}` : `Cookie: ${owner.cookies()}`
  const headers = ['Host: x', `Origin: ${server.url}`, 'X-Errand-Console: 1', signIn]
  if (type !== undefined) headers.push(`Content-Type: ${type}`, `Content-Length: ${body.length}`)
  return `${method} ${address} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`
}

test('unread responses on any route delay only their own project', { timeout: 900_000 }, async () => {
  const owner = await firstOwner(server)
  const body = await largeRun()
  const things = { ...(await ownThings(server, owner)), [PATH]: { id: body.interactionId } }
  const routes = await everyRoute(things)
  const neighbor = { 'x-svc-api-key': await server.createKey('neighbor') }

  // Reads every GET route, to measure the peak memory and to find the large responses.
  const large: string[] = []
  const read = async () => {
    for (const { route, address } of routes.filter(({ route }) => route.method === 'GET')) {
      const headers = { 'x-errand-console': '1', cookie: owner.cookies(), 'x-svc-api-key': server.key }
      const response = await fetch(server.url + address, { headers, redirect: 'manual' })
      expect(response.status, address).toBeLessThan(400)
      if ((await response.arrayBuffer()).byteLength > LARGE_BYTES / 2) large.push(route.path)
    }
  }
  const alone = await peakDuring(read())
  expect(large.length, large.join(', ')).toBeGreaterThanOrEqual(3)

  const ask = async () => {
    for (const { route, address } of routes) {
      await clients.ask(ASKING, wireOf(route, address, owner).repeat(PIPELINED))
      if (large.includes(route.path)) await settled()
      expect((await server.get(PATH, neighbor)).status, `beside ${route.method} ${route.path}`).toBe(200)
    }
    await clients.ask(0, '')
  }
  const peak = await peakDuring(ask())
  const grown = ((peak - alone) / 1e6).toFixed(0)
  figure('R16', 'routes called by clients that never read, and clients per route', `${routes.length}, ${ASKING}`)
  figure('R16', 'maximum additional memory compared with one call of each, MB', grown)
  expect(peak - alone).toBeLessThan(MOST_GROWTH)
})

test('a client that reads nothing of a large response is disconnected, on any route', {
  timeout: 300_000,
}, async () => {
  const body = await largeRun()
  const { pathname, search } = new URL(body.files[0].url)
  const addresses = [`${PATH}/${body.interactionId}`, `${PATH}/${body.interactionId}:stream`, pathname + search]
  const own = addresses.map(() => openClients(Number(new URL(server.url).port)))
  const asked = performance.now()
  const headers = `Host: x\r\nx-svc-api-key: ${server.key}\r\n\r\n`
  const ports = await Promise.all(own.map((each, i) => each.ask(1, `GET ${addresses[i]} HTTP/1.1\r\n${headers}`)))
  expect(await held(ports.flat())).toBe(addresses.length)
  while ((await held(ports.flat())) > 0) await sleep(200)
  expect(performance.now() - asked).toBeLessThan(DROPPED_WITHIN_MS)
  for (const each of own) each.close()
})
