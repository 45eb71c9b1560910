/**
 * R14: the model's stream breaks after fragments of the answer were sent. It ends, is reset, sends an error or stalls,
 * after any fragment, without tools, with tools and after tool calls, several times in a row. The model is asked to continue. It continues
 * exactly, repeats the end of the shown text, or starts from the beginning. The answer is complete, and no text is
 * shown twice.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, ROOMY } from '../contract/invariants.ts'
import {
  type FakeProvider,
  type Fault,
  openFakeProvider,
  type RecordedRequest,
  type Reply,
  restOf,
} from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

const RUNS = rounds(100, 20)
const FAULTS = ['truncate-after', 'reset-after', 'error-event-after', 'stall-after'] as const
const PARTS = Array.from(
  { length: 12 },
  (_, i) => `Part ${i}: ${Array.from({ length: 20 }, (_, j) => i * j).join(' ')}. `,
)
const ANSWER = PARTS.join('')
/** Maximum number of broken streams in one run. */
const MOST_BREAKS = 3
const random = seeded('R14')

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', idleTimeoutS: 1 }
  server = await startServer({ config: { models: { 'svc-3.5-flash': model }, limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const CALL = { name: 'code_execution', args: { code: 'print(6 * 7)' } }

/** A model that makes `calls` tool calls, continues after the partial answer it receives, and breaks it `breaks` times. */
function breaking(breaks: number, calls: number, from: (sent: number) => number) {
  let left = breaks
  return (request: RecordedRequest): Reply => {
    if (request.body.messages.filter(({ role }) => role === 'tool').length < calls) return { toolCalls: [CALL] }
    const rest = restOf(ANSWER, request)
    const sent = ANSWER.endsWith(rest) ? ANSWER.length - rest.length : ANSWER.length
    const text = ANSWER.slice(from(sent)).match(/.{1,70}/g) ?? ['[end of answer]']
    if (left-- <= 0) return { text }
    const fault: Fault = `${random.pick(FAULTS)}:${random.whole(1, text.length)}`
    return { text, fault }
  }
}

/** Start of a continuation: exactly where the text stopped, with some text repeated, or from the beginning. */
const CONTINUATIONS: readonly ((sent: number) => number)[] = [
  (sent) => sent,
  (sent) => Math.max(0, sent - 12),
  (sent) => Math.max(0, sent - 300),
  () => 0,
]

test('continues an answer whose stream breaks, without losing or repeating text', {
  timeout: RUNS * 10_000,
}, async () => {
  let breaks = 0
  await Promise.all(
    Array.from({ length: RUNS }, async (_, i) => {
      const marker = `[broken ${i}.]`
      const times = random.whole(1, MOST_BREAKS)
      breaks += times
      const tools = random.pick([[], ['code_execution']])
      const calls = tools.length > 0 ? random.whole(0, 2) : 0
      provider.when(marker, breaking(times, calls, random.pick(CONTINUATIONS)))
      const answer = await server.post('/v1beta/interactions', { instruction: marker, tools })
      expect(answer.status, answer.text).toBe(200)
      const { interaction } = await checkEnded(server, answer.body.interactionId)
      expect(interaction).toMatchObject({ status: 'completed', output: ANSWER })
      expect(interaction.executionTrace).toHaveLength(2 * calls)
      const asked = provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(marker))
      expect(asked).toHaveLength(calls + times + 1)
    }),
  )
  figure('R14', 'streams that broke off', breaks)
  figure('R14', 'complete answers without repetition, of runs', `${RUNS} of ${RUNS}`)
})
