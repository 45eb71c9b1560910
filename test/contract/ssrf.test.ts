/** Checks every forbidden address in every request field that takes an address (SSRF). */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Canary, openCanary } from '../egress/canary.ts'
import { vectors } from '../egress/urls.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

/** Number of concurrent requests. */
const AT_ONCE = 8

let canaries: Canary[]
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  const first = await openCanary('127.0.0.1')
  canaries = [first, await openCanary('::1', undefined, first.port)]
  provider = await openFakeProvider()
  server = await startServer({
    provider,
    config: {
      limits: { interactionsPerMinute: 100_000, callsPerMinute: 100_000 },
      // The port is allowed on another address, so only the address can cause the refusal.
      egress: { allowPrivate: [`192.168.77.77:${first.port}`] },
    },
  })
})
afterAll(async () => {
  await server.stop()
  await provider.close()
  for (const canary of canaries) await canary.close()
})

const FIELDS: Readonly<Record<string, (url: string) => object>> = {
  'files[0].url': (url) => ({ files: [{ name: 'a', url }] }),
  'webhook.url': (url) => ({ webhook: { url } }),
  'mcp[0].url': (url) => ({ mcp: [{ name: 'm', url }] }),
}

it.each(Object.entries(FIELDS))(
  '%s refuses every forbidden address with 400, and no connection is made',
  async (param, toFields) => {
    const waiting = vectors(canaries[0]!.port).values()
    let refused = 0
    async function next(): Promise<void> {
      for (const url of waiting) {
        const body = { instruction: 'x', ...toFields(url) }
        const answer = await server.post('/v1beta/interactions', body, { prefer: 'handling=strict' })
        expect(answer.status, `${JSON.stringify(url)} ${answer.text}`).toBe(400)
        expect(errorOf(answer).param, url).toBe(param)
        refused++
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next))
    expect(refused).toBeGreaterThan(500)
    expect(canaries.map(({ hits }) => hits)).toEqual([0, 0])
    expect(provider.requests).toEqual([])
  },
)
