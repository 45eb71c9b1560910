/** Checks the time limit of a schema: validation that takes too long fails only its own run. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { ROOMY } from './invariants.ts'

const PATH = '/v1beta/interactions'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  server = await startServer({ provider, config: { limits: ROOMY } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

it('fails only its own run if validation takes too long, and delays no other request', {
  timeout: 180_000,
}, async () => {
  const doubling = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [`a${i}`, { allOf: [1, 2].map(() => ({ $ref: `#/$defs/a${i + 1}` })) }]),
  )
  const formats = [
    { type: 'string', pattern: '^(a+)+$' },
    { $ref: '#/$defs/a0', $defs: { ...doubling, a60: { type: 'string' } } },
  ]
  provider.when('[for ever]', () => ({ text: JSON.stringify(`${'a'.repeat(60)}!`) }))
  const runs = formats.map((responseFormat) => server.post(PATH, { instruction: '[for ever]', responseFormat }))
  expect((await server.get('/healthz')).status).toBe(200)
  for (const answer of await Promise.all(runs)) {
    expect(errorOf(answer)).toMatchObject({ code: 'model_error', message: expect.stringContaining('within 5 s') })
  }
})
