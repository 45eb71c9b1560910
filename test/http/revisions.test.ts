/** API revisions are codecs: adding a second one changes nothing outside the HTTP layer. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRevision20260520 } from '../../src/http/wire/2026-05-20/codec.ts'
import { type Edge, openEdge } from './edge.ts'
import { createNextRevision } from './next-revision.ts'

let edge: Edge
beforeAll(async () => {
  edge = await openEdge({
    revisions: (limits) => {
      const first = createRevision20260520(limits)
      return [createNextRevision(first), first]
    },
  })
})
afterAll(() => edge.close())

const OLD = { 'api-revision': '2026-05-20' }
const NEXT = { 'api-revision': '2027-01-15' }

test('each revision has its own field names, and its name is in the answer’s Api-Revision header', async () => {
  const old = await edge.call('POST', '/v1beta/interactions', { instruction: 'x' }, OLD)
  expect(old.headers['api-revision']).toBe('2026-05-20')
  expect(old.body).toMatchObject({ output: 'hi', usage: { input_tokens: 10 } })
  expect(old.body).not.toHaveProperty('answer')

  const next = await edge.call('POST', '/v1beta/interactions', { text: 'x' }, NEXT)
  expect(next.headers['api-revision']).toBe('2027-01-15')
  expect(next.body).toMatchObject({ answer: 'hi', usage: { inputTokens: 10 } })
  expect(next.body).not.toHaveProperty('output')
  expect(edge.engine.runs.map((run) => run.request.instruction)).toEqual(['x', 'x'])
})

test('an interaction can be read in either revision', async () => {
  const { body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x' }, OLD)
  const path = `/v1beta/interactions/${body.id}`
  expect((await edge.call('GET', path, undefined, OLD)).body.output).toBe('hi')
  expect((await edge.call('GET', path, undefined, NEXT)).body.answer).toBe('hi')
})

test('events have the revision’s names and fields, and the same sequence numbers', async () => {
  const { text } = await edge.call('POST', '/v1beta/interactions:stream', { text: 'x' }, NEXT)
  expect(text).not.toContain('event: stage')
  expect(text).toContain('id: 2\nevent: answer_delta\ndata: {"text":"hi"}\n\n')
})

test('if a revision encodes one event as several, only the last one has its sequence number', async () => {
  const { text } = await edge.call('POST', '/v1beta/interactions:stream', { text: 'x' }, NEXT)
  expect(text).toMatch(/\n\nevent: usage\ndata: {"inputTokens":10,.*}\n\nid: 3\nevent: completed\ndata: .*\n\n$/)
})

test('uses the latest revision if the header is missing', async () => {
  const { headers } = await edge.call('GET', '/v1beta/agents')
  expect(headers['api-revision']).toBe('2027-01-15')
})

test.each(['2026-05-21', 'latest', '', '2026-05-20, 2027-01-15'])(
  'refuses the revision %j and lists the supported ones',
  async (asked) => {
    const { status, body, headers } = await edge.call('GET', '/v1beta/agents', undefined, { 'api-revision': asked })
    expect(status).toBe(400)
    expect(body.error).toMatchObject({
      code: 'unsupported_api_revision',
      param: 'Api-Revision',
      supported: ['2026-05-20', '2027-01-15'],
    })
    expect(headers).not.toHaveProperty('api-revision')
  },
)

test('error answers have the revision header too', async () => {
  const { headers } = await edge.call('POST', '/v1beta/interactions', {}, OLD)
  expect(headers['api-revision']).toBe('2026-05-20')
})
