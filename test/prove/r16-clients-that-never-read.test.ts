/**
 * R16: clients that request a stream of 24 MB and never read it, during the run and after it. They use almost no memory
 * and are disconnected, and other runs continue.
 */
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { open } from '../http/raw.ts'
import { figure, rounds } from '../support/prove.ts'
import { BOUNDED_HEAP, type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'
const MIB = 1024 * 1024
const CLIENTS = rounds(50, 10)
const TURNS = rounds(12, 3)
/** Size of one turn's text. All turns together have 24 MB. */
const TURN_BYTES = 2 * MIB
const PASSES = 5
const MOST_GROWTH = 64 * MIB
/** 30 s in the full form; longer in the short form, which runs in parallel with other tests. */
const DROPPED_WITHIN_MS = rounds(30_000, 45_000)

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  const text = Array.from({ length: 64 }, () => 'x'.repeat(TURN_BYTES / 64))
  const turn = { text, toolCalls: [{ name: 'nothing', args: {} }] }
  provider.when('[long]', ...Array.from({ length: TURNS }, () => turn), { text: 'Done.' })
  provider.when('[short]', { text: 'Done.' })
  server = await startServer({ provider, env: BOUNDED_HEAP, config: { limits: { ...ROOMY, runningPerProject: 100 } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

async function residentBytes(): Promise<number> {
  const status = await readFile(`/proc/${server.process.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024
}

/** Returns the peak memory of the server while `task` runs. */
async function peakDuring(task: Promise<unknown>): Promise<number> {
  let peak = 0
  let over = false
  void task.finally(() => {
    over = true
  })
  while (!over) {
    peak = Math.max(peak, await residentBytes())
    await sleep(50)
  }
  return peak
}

async function begin(): Promise<string> {
  const policy = { maxOutputTokens: 1_000_000 }
  return (await server.post(PATH, { instruction: '[long]', background: true, policy })).body.interactionId
}

async function shortRuns(): Promise<unknown> {
  return Promise.all(
    Array.from({ length: 20 }, async () => {
      const { body } = await server.post(PATH, { instruction: '[short]' })
      expect(body).toMatchObject({ status: 'completed', output: 'Done.' })
      return checkEnded(server, body.interactionId)
    }),
  )
}

/** Requests the stream and never reads it. */
async function ask(id: string): Promise<Socket> {
  const socket = await open(server.url)
  socket.pause().on('error', () => {})
  socket.write(`GET ${PATH}/${id}:stream HTTP/1.1\r\nHost: x\r\nx-svc-api-key: ${server.key}\r\n\r\n`)
  return socket
}

/**
 * Number of connections from `sockets` that the server still has. Read from the kernel's table, because the clients
 * never read.
 */
async function held(sockets: readonly Socket[]): Promise<number> {
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/))
  const server_ = hexPort(Number(new URL(server.url).port))
  const ours = new Set(sockets.map(({ localPort }) => hexPort(localPort!)))
  const ESTABLISHED = '01'
  return rows.filter(([, local = '', remote = '', state]) => {
    return local.endsWith(server_) && ours.has(remote.slice(-5)) && state === ESTABLISHED
  }).length
}

/** A port as in /proc/net/tcp: `:1F90`. */
function hexPort(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, '0')}`
}

test('clients that never read use almost no memory, are disconnected, and do not affect other clients', {
  timeout: 600_000,
}, async () => {
  // Memory of a long run while short ones run: the maximum of several passes, because it still rises in the first ones.
  let finished = ''
  let alone = 0
  for (let pass = 0; pass < PASSES; pass++) {
    finished = await begin()
    alone = Math.max(alone, await peakDuring(Promise.all([ended(server, finished), shortRuns()])))
  }

  const live = await begin()
  const sockets = await Promise.all(Array.from({ length: CLIENTS }, (_, i) => ask(i % 2 === 0 ? live : finished)))
  const beside = shortRuns()
  const asked = performance.now()
  const dropped = (async () => {
    while ((await held(sockets)) > 0) await sleep(200)
    return performance.now() - asked
  })()
  const peak = await peakDuring(Promise.all([ended(server, live), beside, dropped]))
  const { interaction } = await checkEnded(server, live)
  expect(interaction.output).toHaveLength(TURNS * (TURN_BYTES + 2) + 'Done.'.length)

  figure('R16', 'clients, and size of each response, MB', `${CLIENTS}, ${((TURNS * TURN_BYTES) / 1e6).toFixed(0)}`)
  figure('R16', 'maximum additional memory compared with a run without them, MB', ((peak - alone) / 1e6).toFixed(0))
  figure('R16', 'time until all were disconnected, s', ((await dropped) / 1_000).toFixed(1))
  for (const socket of sockets) socket.destroy()
  expect(peak - alone).toBeLessThan(MOST_GROWTH)
  expect(await dropped).toBeLessThan(DROPPED_WITHIN_MS)
})
