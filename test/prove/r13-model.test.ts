/**
 * R13: a run ends whatever its model's provider does. It completes, or fails with a reason after at most three attempts
 * before the answer begins and six after. Text that was shown is kept and never repeated. The idle timeout ends a
 * silent connection.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ended, outputOf, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider, type Reply } from '../fake-provider.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'
const ANSWER = ['Grüße ', 'aus 東京, ', 'für 10 €. 🙂']
const ROUNDS = rounds(50, 4)
/** Runs in a batch: fewer failures than open the circuit breaker. A good answer between batches resets its count. */
const BATCH = 4
const RETRY_AFTER_S = 1

/** Providers by the name of their model. Each fault has one of its own, so that its failures open no other circuit breaker. */
const providers = new Map<string, FakeProvider>()
let server: Server
const arrivals = new Map<string, number[]>()

beforeAll(async () => {
  for (const i of [...Object.keys(TROUBLES), SPLIT].keys()) providers.set(`m${i}`, await openFakeProvider())
  const models = Object.fromEntries(
    [...providers].map(([name, { url }]) => [
      name,
      { provider: 'openai-compatible', baseUrl: url, model: 'fake', idleTimeoutS: 2 },
    ]),
  )
  server = await startServer({ config: { models, limits: { ...ROOMY, runningPerProject: 100 } } })
})
afterAll(async () => {
  await server?.stop()
  for (const provider of providers.values()) await provider.close()
})

interface Trouble {
  readonly reply: Reply
  /** Output of a run if every attempt has the fault. */
  readonly said: string
  /** Number of attempts of such a run. */
  readonly tries: 3 | 6
}

const before = (fault: Reply['fault'], rest: Reply = {}): Trouble => ({ reply: { fault, ...rest }, said: '', tries: 3 })
const amid = (fault: Reply['fault']): Trouble => ({ reply: { fault, text: ANSWER }, said: ANSWER[0]!, tries: 6 })

const TROUBLES: Record<string, Trouble> = {
  '429 with Retry-After': before('status:429', { headers: { 'retry-after': String(RETRY_AFTER_S) } }),
  '500': before('status:500'),
  '503': before('status:503'),
  'a reset': before('reset'),
  'a reset in the middle': amid('reset-after:1'),
  'a stall': before('stall'),
  'a connection half open': amid('stall-after:1'),
  'a stream cut short before the answer': before('truncate-after:0'),
  'a stream cut short in the middle': amid('truncate-after:1'),
  'an error event': before('error-event'),
  'an error event in the middle': amid('error-event-after:1'),
}

const SPLIT = 'split UTF-8'
/** Name of the model that has this fault. */
const modelOf = (fault: string) => `m${[...Object.keys(TROUBLES), SPLIT].indexOf(fault)}`

/** Scripts replies of a model that record the time of each attempt. */
function scripted(model: string, marker: string, replies: readonly Reply[]): void {
  const times: number[] = []
  arrivals.set(marker, times)
  providers.get(model)!.when(marker, () => {
    times.push(performance.now())
    return replies[Math.min(times.length, replies.length) - 1]!
  })
}

async function run(model: string, marker: string): Promise<string> {
  const { status, body, text } = await server.post(PATH, { instruction: marker, background: true, model })
  expect(status, text).toBe(200)
  return body.interactionId
}

async function inBatches(
  fault: string,
  kind: string,
  replies: readonly Reply[],
  judge: (id: string, marker: string) => Promise<void>,
) {
  for (let done = 0; done < ROUNDS; done += BATCH) {
    const model = modelOf(fault)
    const markers = Array.from({ length: Math.min(BATCH, ROUNDS - done) }, (_, i) => `[${kind}: ${fault} ${done + i}]`)
    for (const marker of markers) scripted(model, marker, replies)
    await Promise.all(markers.map(async (marker) => judge(await run(model, marker), marker)))
    const well = `[well after ${kind}: ${fault} ${done}]`
    scripted(model, well, [{ text: 'Well.' }])
    expect((await ended(server, await run(model, well))).status).toBe('completed')
  }
}

// The tests run at the same time, because most of their time is waiting for retries and idle timeouts.
test.concurrent.each(Object.entries(TROUBLES))(
  'a run fails after a bounded number of attempts if the fault is permanent: %s',
  { timeout: 600_000 },
  async (name, { reply, said, tries }) => {
    const waits: number[] = []
    await inBatches(name, 'permanent', [reply], async (id, marker) => {
      const body = await ended(server, id)
      expect(body, name).toMatchObject({ status: 'failed', error: { code: 'model_error', retryable: true } })
      const { events } = await checkEnded(server, id)
      expect(outputOf(events)).toBe(said)
      const times = arrivals.get(marker)!
      expect(times).toHaveLength(tries)
      for (const [i, at] of times.slice(1).entries()) waits.push(at - times[i]!)
    })
    if (reply.headers) expect(Math.min(...waits)).toBeGreaterThanOrEqual(RETRY_AFTER_S * 1000)
    // Jitter: no two runs retry at the same time.
    if (waits.length > 0) expect(new Set(waits.map((wait) => Math.round(wait))).size).toBeGreaterThan(1)
    figure('R13', `${name}, permanent: runs that failed after ${tries} attempts`, ROUNDS)
  },
)

test.each(Object.entries(TROUBLES).filter(([, { tries }]) => tries === 3))(
  'a run completes at the second attempt if the fault is temporary: %s',
  { timeout: 600_000 },
  async (name, { reply }) => {
    await inBatches(name, 'temporary', [reply, { text: ANSWER }], async (id, marker) => {
      expect(await ended(server, id), name).toMatchObject({ status: 'completed', output: ANSWER.join('') })
      await checkEnded(server, id)
      expect(arrivals.get(marker)).toHaveLength(2)
    })
    figure('R13', `${name}, temporary: runs answered at the second attempt`, ROUNDS)
  },
)

test('completes an answer whose chunks split characters', { timeout: 600_000 }, async () => {
  const cut = (body: Buffer) =>
    Array.from({ length: Math.ceil(body.length / 7) }, (_, i) => body.subarray(i * 7, i * 7 + 7))
  await inBatches(SPLIT, 'whole', [{ text: ANSWER, cut }], async (id) => {
    expect((await ended(server, id)).output).toBe(ANSWER.join(''))
    await checkEnded(server, id)
  })
  figure('R13', 'split UTF-8: runs with the exact answer', ROUNDS)
})
