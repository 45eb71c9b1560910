/**
 * R17: connections that send a byte from time to time and never a whole request. Each is refused after a while (one
 * that sends nothing is closed without a response). Other clients are served at normal speed at the same time.
 */
import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { open, readAnswer } from '../http/raw.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'
const SOCKETS = rounds(2_000)
const CALLS = rounds(1_000)
const OPENED_AT_ONCE = 100
const DRIP_MS = 1_000
const MOST_RATIO = 2

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  provider.when('[hi]', { text: 'Hi.' })
  server = await startServer({ provider, config: { limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** 99th percentile of the duration of calls, in milliseconds. Each call is a whole run, one after the other. */
async function callsTake(): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < CALLS; i++) {
    const started = performance.now()
    const { status, body } = await server.post(PATH, { instruction: '[hi]' })
    times.push(performance.now() - started)
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 'completed', output: 'Hi.' })
    if (i === 0) await checkEnded(server, body.interactionId)
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!
}

function drip(socket: Socket): NodeJS.Timeout {
  return setInterval(() => socket.write('x'), DRIP_MS)
}

test('slow senders are refused and do not slow down other clients', {
  timeout: 600_000,
}, async () => {
  await callsTake() // Warm-up.
  const alone = await callsTake()
  const answers: ReturnType<typeof readAnswer>[] = []
  const timers: NodeJS.Timeout[] = []
  const silent = readAnswer(await open(server.url))
  while (answers.length < SOCKETS) {
    const sockets = await Promise.all(Array.from({ length: OPENED_AT_ONCE }, () => open(server.url)))
    for (const socket of sockets) {
      socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nx-slow: `)
      timers.push(drip(socket))
      answers.push(readAnswer(socket))
    }
  }
  const beside = await callsTake()
  const refused = await Promise.all(answers)
  for (const timer of timers) clearInterval(timer)
  expect(refused.filter(({ status }) => status !== 400)).toEqual([])
  // A browser may preconnect, and would read an error sent on an idle connection as the response to its next request.
  expect((await silent).text).toBe('')

  figure('R17', 'slow senders, each refused', refused.length)
  figure('R17', 'p99 of a run without them, ms', alone.toFixed(1))
  figure('R17', 'p99 of a run with them, ms', beside.toFixed(1))
  // The short form runs in parallel with other tests, where a p99 has no meaning.
  if (process.env.PROVE) expect(beside / alone).toBeLessThanOrEqual(MOST_RATIO)
})
