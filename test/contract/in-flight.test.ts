/**
 * Checks the limits on data in flight: over a limit, calls of the same project are refused until room is free again,
 * and other projects are not affected.
 */
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { open } from '../http/raw.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { python, toolRunner } from '../support/tool-run.ts'
import { ROOMY } from './invariants.ts'

const PATH = '/v1beta/interactions'
const MIB = 1024 * 1024
/** More than the kernel buffers for a reader that reads nothing: 4 MiB to send and up to 32 MiB received. */
const LONG_BYTES = 40 * MIB
const TURN_BYTES = 2 * MIB
const LIMITS = {
  ...ROOMY,
  // Less than the long answer, which is sent nevertheless if it is the only one.
  responseBytesPerProject: LONG_BYTES / 2,
  uploadBytesPerProject: 256 * 1024,
  streamsPerProject: 4,
}

let provider: FakeProvider
let server: Server
let long: string
let neighbor: Readonly<Record<string, string>>
const run = toolRunner(
  () => server,
  () => provider,
)
const held = Promise.withResolvers<void>()
const sockets: Socket[] = []
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  const turn = { text: 'x'.repeat(TURN_BYTES), toolCalls: [{ name: 'nothing', args: {} }] }
  provider.when('[long]', ...Array.from({ length: LONG_BYTES / TURN_BYTES }, () => turn), { text: 'Done.' })
  provider.when('[held]', { text: 'Done.', hold: held.promise })
  provider.when('[short]', { text: 'Done.' })
  server = await startServer({ provider, config: { limits: LIMITS } })
  neighbor = { 'x-svc-api-key': await server.createKey('neighbor') }
  const policy = { maxOutputTokens: 1_000_000 }
  long = (await server.post(PATH, { instruction: '[long]', background: true, policy })).body.interactionId
  await vi.waitFor(
    async () => expect((await server.get(`${PATH}?pageSize=1`)).body.interactions[0].status).toBe('completed'),
    60_000,
  )
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(async () => {
  held.resolve()
  await server?.stop()
  await provider?.close()
})

/** Sends a request and reads only the status of the answer. */
async function begin(head: string): Promise<Socket> {
  const socket = await send(head)
  const STATUS = 'HTTP/1.1 200'
  await vi.waitFor(() => expect(String(socket.read(STATUS.length))).toBe(STATUS), 20_000)
  return socket
}

/** Sends a request and reads nothing. */
async function send(head: string, body: string | Buffer = ''): Promise<Socket> {
  const socket = await open(server.url)
  socket.on('readable', () => {}).on('error', () => {})
  socket.write(`${head} HTTP/1.1\r\nHost: x\r\nx-svc-api-key: ${server.key}\r\n`)
  socket.write(body === '' ? '\r\n' : body)
  sockets.push(socket)
  return socket
}

async function running(count: number): Promise<void> {
  const list = () => server.get(`${PATH}?status=running`)
  await vi.waitFor(async () => expect((await list()).body.interactions).toHaveLength(count), 20_000)
}

function expectRefused(answer: Awaited<ReturnType<Server['get']>>, words: string): void {
  expect(answer.status, answer.text.slice(0, 200)).toBe(429)
  expect(errorOf(answer)).toMatchObject({ code: 'rate_limited', retryable: true })
  expect(errorOf(answer).message).toContain(words)
  expect(answer.headers.get('retry-after')).toBe('10')
}

test('refuses more answers to a project that does not read the ones in flight', async () => {
  const unread = await begin(`GET ${PATH}/${long}`)
  expectRefused(await server.get(`${PATH}/${long}`), 'in flight')
  expectRefused(await server.get(PATH), 'in flight')
  expect((await server.get(PATH, neighbor)).status).toBe(200)
  expect((await server.post(PATH, { instruction: '[short]' }, neighbor)).body.output).toBe('Done.')
  unread.destroy()
  await vi.waitFor(
    async () => expect((await server.get(`${PATH}/${long}`)).body.output.length).toBeGreaterThan(LONG_BYTES),
    20_000,
  )
})

test('accepts a body while there is room, and refuses it while other bodies of the project use the room', async () => {
  const agent = (bytes: number) => JSON.stringify({ description: 'x'.repeat(9_000), x: 'x'.repeat(bytes) })
  const head = (length: number) => `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
  // The server may read the second body first. Then it refuses the half of the first one, so each attempt sends that again.
  const half = await vi.waitFor(async () => {
    const half = await send('POST /v1beta/agents', `${head(300_000)}${'{'.padEnd(200_000)}`)
    const answer = await server.post('/v1beta/agents', JSON.parse(agent(100_000)))
    if (answer.status === 200) half.destroy()
    expectRefused(answer, 'bodies')
    return half
  }, 20_000)
  expect((await server.post('/v1beta/agents', JSON.parse(agent(100_000)), neighbor)).status).toBe(200)
  expect((await server.post('/v1beta/agents', { displayName: 'small' })).status).toBe(200)
  half.destroy()
  await vi.waitFor(async () => {
    expect((await server.post('/v1beta/agents', JSON.parse(agent(100_000)))).status).toBe(200)
  }, 20_000)
})

test('releases the room of a body while its call waits for the run to end', async () => {
  const padding = { x: 'x'.repeat(150_000) }
  const waiting: ReturnType<Server['post']>[] = []
  for (const count of [1, 2, 3]) {
    waiting.push(server.post(PATH, { instruction: '[held]', ...padding }))
    await running(count)
  }
  expect((await server.post('/v1beta/agents', { description: 'x'.repeat(9_000), ...padding })).status).toBe(200)
  held.resolve()
  for (const { body } of await Promise.all(waiting)) expect(body.output).toBe('Done.')
})

test('limits concurrent streams and waiting calls; a refused call starts no run', async () => {
  const gate = Promise.withResolvers<void>()
  provider.when('[gate]', { text: 'Done.', hold: gate.promise })
  const { interactionId } = (await server.post(PATH, { instruction: '[gate]', background: true })).body
  const waiting = server.post(PATH, { instruction: '[gate]' })
  const streams = await Promise.all([1, 2, 3].map(() => server.stream(`${PATH}/${interactionId}:stream`)))
  await running(2)
  const before = (await server.get(PATH)).body.interactions.length
  expectRefused(await server.get(`${PATH}/${interactionId}:stream`), 'streams')
  expectRefused(await server.post(PATH, { instruction: '[short]' }), 'streams')
  expectRefused(await server.post(`${PATH}:stream`, { instruction: '[short]' }), 'streams')
  expect((await server.get(PATH)).body.interactions).toHaveLength(before)
  expect((await server.post(PATH, { instruction: '[short]', background: true })).status).toBe(200)
  expect((await server.post(PATH, { instruction: '[short]' }, neighbor)).body.output).toBe('Done.')
  streams[0]!.drop()
  await vi.waitFor(async () => expect((await server.post(PATH, { instruction: '[short]' })).status).toBe(200), 20_000)
  gate.resolve()
  expect((await waiting).body.output).toBe('Done.')
  for (const stream of streams.slice(1)) await stream.all()
})

test('counts unread downloads as streams of the project that owns the files', async () => {
  const { body } = await run([python(`open('outputs/large', 'wb').truncate(${LONG_BYTES})`)])
  const { pathname, search } = new URL(body.files[0].url)
  const download = () => server.get(pathname + search)
  for (let count = 0; count < LIMITS.streamsPerProject; count++) await begin(`GET ${pathname}${search}`)
  expectRefused(await download(), 'downloads')
  expect((await server.get('/healthz')).status).toBe(200)
  sockets[0]!.destroy()
  await vi.waitFor(async () => expect((await download()).text).toHaveLength(LONG_BYTES), 20_000)
})
