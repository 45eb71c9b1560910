/** A revision is a codec: a second one stands beside the first without anything behind the edge knowing. */
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

test('each revision takes and gives its own words, and names itself in the answer', async () => {
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

test('one interaction can be read in either revision', async () => {
  const { body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x' }, OLD)
  const path = `/v1beta/interactions/${body.id}`
  expect((await edge.call('GET', path, undefined, OLD)).body.output).toBe('hi')
  expect((await edge.call('GET', path, undefined, NEXT)).body.answer).toBe('hi')
})

test('events have the names and fields of the revision, under the same numbers', async () => {
  const { text } = await edge.call('POST', '/v1beta/interactions:stream', { text: 'x' }, NEXT)
  expect(text).not.toContain('event: stage')
  expect(text).toContain('id: 2\nevent: answer_delta\ndata: {"text":"hi"}\n\n')
})

test('an event that a revision shows as several has its number on the last one', async () => {
  const { text } = await edge.call('POST', '/v1beta/interactions:stream', { text: 'x' }, NEXT)
  expect(text).toMatch(/\n\nevent: usage\ndata: {"inputTokens":10,.*}\n\nid: 3\nevent: completed\ndata: .*\n\n$/)
})

test('without the header the latest revision is used', async () => {
  const { headers } = await edge.call('GET', '/v1beta/agents')
  expect(headers['api-revision']).toBe('2027-01-15')
})

test.each(['2026-05-21', 'latest', '', '2026-05-20, 2027-01-15'])(
  'the revision %j is refused with those served',
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

test('an error after the choice names the revision too', async () => {
  const { headers } = await edge.call('POST', '/v1beta/interactions', {}, OLD)
  expect(headers['api-revision']).toBe('2026-05-20')
})
