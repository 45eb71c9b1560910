/**
 * S12: a model and a tool write text that looks like events: line breaks of every kind, `data:`, `event:`, `id:`, blank
 * lines. A strict reader gets exactly the events that were sent, from the encoder alone and over HTTP.
 */
import fc, { type Arbitrary } from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { encodeEvent, type RunEvent } from '../../src/domain/event.ts'
import { formatEvent } from '../../src/http/response/sse.ts'
import { checkEnded, outputOf, ROOMY, traceOf } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import { readSse } from '../support/sse.ts'

const TEXTS = rounds(10_000)
/** Number of texts in one answer. */
const FRAGMENTS = 100
const { seed } = seeded('S12')

const PIECES = [
  '\n',
  '\r',
  '\r\n',
  '\n\n',
  'data: {}',
  'event: completed',
  'id: 999',
  ': x',
  'retry: 0',
  '\u2028',
  '\u0000',
  '\ufeff',
]
const hostile: Arbitrary<string> = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'binary', maxLength: 8 })), {
    minLength: 1,
    maxLength: 8,
  })
  .map((pieces) => pieces.join(''))

const EVENTS: readonly ((text: string) => RunEvent)[] = [
  (text) => ({ type: 'reasoning_started', step: 1, content: text }),
  (text) => ({ type: 'reasoning_delta', step: 1, text }),
  (text) => ({ type: 'tool_call', step: 2, name: text, args: { [text]: text } }),
  (text) => ({ type: 'tool_output', step: 2, text }),
  (text) => ({ type: 'tool_result', step: 3, output: text, duration_ms: 1 }),
  (text) => ({ type: 'partial_output', text }),
  (text) => ({ type: 'warning', code: 'unknown_tool', param: text, message: text }),
]

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  server = await startServer({ provider, config: { limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

test('the encoder never lets a text forge an event', async () => {
  const texts = fc.sample(hostile, { seed, numRuns: TEXTS })
  const sent = texts.flatMap((text) => EVENTS.map((make) => make(text)))
  const wire = sent.map((event, i) => formatEvent(i + 1, [{ type: event.type, data: encodeEvent(event) }])).join('')
  let at = 0
  for await (const { id, event, data } of readSse(new Response(wire))) {
    const { type, ...fields } = sent[at]!
    expect({ id, event, data }).toEqual({ id: String(++at), event: type, data: JSON.parse(JSON.stringify(fields)) })
  }
  expect(at).toBe(sent.length)
  figure('S12', 'events framed and parsed: each type with each text', at)
})

test('no text of a model forges an event over HTTP', { timeout: 600_000 }, async () => {
  const texts = fc.sample(hostile, { seed, numRuns: TEXTS })
  for (let from = 0; from < texts.length; from += FRAGMENTS) {
    const fragments = texts.slice(from, from + FRAGMENTS)
    const calls = fragments.slice(0, 5).map((text) => ({ name: 'nothing', args: { [`a${text}`]: text } }))
    provider.when(`[${from}]`, { reasoning: fragments, toolCalls: calls }, { text: fragments })
    const stream = await server.stream('/v1beta/interactions:stream', {
      instruction: `[${from}]`,
      tools: ['code_execution'],
    })
    const seen = await stream.all()
    await checkEnded(server, stream.headers.get('x-interaction-id')!, seen)
    expect(outputOf(seen)).toBe(fragments.join(''))
    const [thought, ...steps] = traceOf(seen)
    expect(thought!.content).toBe(fragments.join(''))
    expect(steps.filter(({ type }) => type === 'tool_call').map(({ args }) => args)).toEqual(
      calls.map(({ args }) => args),
    )
  }
  figure('S12', 'model texts that were read back unchanged', TEXTS)
})
