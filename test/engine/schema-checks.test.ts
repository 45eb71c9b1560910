/** Schemas of callers that take long to compile: bounded, and shared out between projects. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(/./, () => ({ text: '{}' }))
  server = await startServer({ provider })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

/** Within the bounds on size and references, and seconds of work for the compiler. */
function slow(title: string) {
  const parts = Array.from({ length: 500 }, (_, i) => ({ properties: { [`p${i}`]: {} } }))
  return { title, allOf: parts, unevaluatedProperties: false }
}

it.each([
  [
    'that has too many dynamic references',
    { properties: many(51, () => ({ $dynamicRef: '#a' })) },
    'more than 50 dynamic references',
  ],
  ['that has too many references', { properties: many(2_001, () => ({ $ref: '#' })) }, 'more than 2000 references'],
  ['that is too deep', nested(41), 'nested deeper than 40 levels'],
  ['that does not compile', { type: 'nonsense' }, 'not a usable JSON Schema'],
  ['that refers to an address', { $ref: 'https://example.com/x' }, 'not a usable JSON Schema'],
])('a schema %s is refused', async (_, responseFormat, phrase) => {
  const { message, param } = errorOf(await server.post(PATH, { instruction: 'Answer.', responseFormat }))
  expect(param).toBe('responseFormat')
  expect(message).toContain(phrase)
})

it('schemas of one project keep no other project waiting, and too many at once are refused', async () => {
  const key = { 'x-svc-api-key': await server.createKey('other') }
  const request = { instruction: 'Answer.', background: true }
  const answered: number[] = []
  const slowOnes = Array.from({ length: 20 }, async (_, i) => {
    const answer = await server.post(PATH, { ...request, responseFormat: slow(`${i}`) }).catch(() => undefined)
    if (answer) answered.push(answer.status)
    return answer
  })
  const refused = await Promise.any(
    slowOnes.map(async (asked) => {
      const answer = await asked
      return answer?.status === 503 ? answer : Promise.reject(new Error('not refused'))
    }),
  )
  expect(errorOf(refused)).toMatchObject({ code: 'unavailable', retryable: true })
  expect(errorOf(refused).message).toContain('responseFormat is waiting to be checked')

  const other = await server.post(PATH, { ...request, responseFormat: { type: 'object' } }, key)
  expect(other.status).toBe(200)
  // 17 of 20 are under way or wait, one after the other, and the other project's was ahead of most of them.
  expect(answered.length).toBeLessThan(20)
})

function many(count: number, make: () => object) {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, make()]))
}

function nested(levels: number): object {
  return levels === 1 ? {} : { not: nested(levels - 1) }
}
