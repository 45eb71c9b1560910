/**
 * R15: a stream is resumed at every event: during the run, after it, and after the server was stopped or killed during
 * it. The reader gets exactly the events after the one that it names.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, type Stream, startServer } from '../support/server.ts'
import type { WireEvent } from '../support/sse.ts'
import { onEveryStore } from './stores.ts'

const PATH = '/v1beta/interactions'
const ROUNDS = rounds(20, 1)
const CODE = `
import time
for i in range(10):
    print(i, flush=True)
    time.sleep(0.02)`
/** Fragments longer than the text that is buffered until it is known to be the answer. */
const FRAGMENTS = Array.from({ length: 30 }, (_, i) => `${i} ${'x'.repeat(250)} `)
/** An event number, and the events received when resuming after it. */
type Rest = readonly [number, Promise<WireEvent[]>]

const random = seeded('R15')

onEveryStore((createDatabase) => {
  let provider: FakeProvider
  let dataDir: string
  let database: string | undefined
  let server: Server
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    const calls = [{ name: 'code_execution', args: { code: CODE } }]
    provider.when('[talks]', { reasoning: ['Well', ', ', 'now.'], toolCalls: calls, delayMs: 5 }, () => ({
      text: FRAGMENTS,
      delayMs: 10,
    }))
    database = await createDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'errand-r15-'))
    server = await start()
  })
  afterAll(async () => {
    await server?.stop()
    await provider?.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  function start(): Promise<Server> {
    return startServer({
      provider,
      dataDir,
      ...(database !== undefined && { database }),
      config: { limits: ROOMY },
      env: { ERRAND_LEASE_S: '1', ERRAND_DRAIN_S: '0' },
      ...(server && { key: server.key }),
    })
  }

  async function begin(): Promise<string> {
    const body = { instruction: '[talks]', tools: ['code_execution'], background: true }
    return (await server.post(PATH, body)).body.interactionId
  }

  function follow(id: string, after: number): Promise<Stream> {
    return server.stream(`${PATH}/${id}:stream`, undefined, { 'last-event-id': String(after) })
  }

  /** Reads all events after number `after`, until the end. */
  async function rest(id: string, after: number): Promise<WireEvent[]> {
    return (await follow(id, after)).all()
  }

  /** Resumes after each event as soon as it arrives, until the end. */
  async function followAtEach(id: string, after: number): Promise<Rest[]> {
    const rests: Rest[] = [[after, rest(id, after)]]
    for await (const event of (await follow(id, after)).events) {
      const seq = Number(event.id)
      rests.push([seq, rest(id, seq)])
    }
    return rests
  }

  async function check(id: string, rests: readonly Rest[]): Promise<number> {
    const { events } = await checkEnded(server, id)
    for (const [after, rest] of rests) expect(await rest, `behind ${after}`).toEqual(events.slice(after))
    return rests.length
  }

  test('a stream can be resumed at every event', { timeout: ROUNDS * 120_000 }, async () => {
    const count = { live: 0, finished: 0, 'after a stop': 0, 'after kill -9': 0 }
    for (let round = 0; round < ROUNDS; round++) {
      const id = await begin()
      count.live += await check(id, await followAtEach(id, 0))
      count.live += await hop(await begin())
      const { events } = await checkEnded(server, id)
      count.finished += await check(
        id,
        [...Array(events.length + 1).keys()].map((after) => [after, rest(id, after)]),
      )
      count['after a stop'] += await restarted('SIGTERM')
      count['after kill -9'] += await restarted('SIGKILL')
    }
    for (const [when, times] of Object.entries(count)) figure('R15', `picked up ${when}, times`, times)
  })

  /** Disconnects after each event and resumes. */
  async function hop(id: string): Promise<number> {
    const seen: WireEvent[] = []
    while (seen.at(-1)?.event !== 'completed') {
      const stream = await follow(id, seen.length)
      const { value } = await stream.events.next()
      seen.push(value!)
      stream.drop()
    }
    await checkEnded(server, id, seen)
    return seen.length
  }

  async function restarted(signal: NodeJS.Signals): Promise<number> {
    const id = await begin()
    const stopAt = random.whole(2, 25)
    const seen: WireEvent[] = []
    for await (const event of (await follow(id, 0)).events) if (seen.push(event) === stopAt) break
    await server.stop(signal)
    server = await start()
    // Resumes at the event where the stream was cut off, and at each event before it.
    const rests = seen.map((_, index): Rest => [index, rest(id, index)])
    rests.push(...(await followAtEach(id, seen.length)))
    await ended(server, id)
    return check(id, rests)
  }
})
