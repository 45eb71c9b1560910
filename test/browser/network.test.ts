/** The browser uses the run's network setting. The default is the public internet. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { auditOf } from '../support/audit.ts'
import { type Server, startServer } from '../support/server.ts'
import { drive } from './drive.ts'
import { openSite, type Site } from './site.ts'

let site: Site
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  site = await openSite({ '/': '<title>Reached</title><p>Reached' })
  provider = await openFakeProvider()
  const allowPrivate = [`127.0.0.1:${site.port}`]
  server = await startServer({ provider, config: { egress: { allowPrivate } } })
})
afterAll(async () => {
  await server.stop()
  await provider.close()
  await site.close()
})

it.each([
  ['no setting', undefined, true],
  ['the network disabled', 'disabled', false],
  ['an allowlist with the host', () => ({ allow: [`a.localhost:${site.port}`] }), true],
  ['an allowlist without the host', () => ({ allow: [`b.localhost:${site.port}`] }), false],
] as const)('reaches a page only if the run’s network setting allows it: %s', async (_, network, reached) => {
  const before = site.asked.length
  const { body, outputs } = await drive(server, provider, [{ action: 'open', url: site.url('/', 'a.localhost') }], {
    network: typeof network === 'function' ? network() : network,
  })
  expect(outputs[0]!.includes('Reached'), outputs[0]).toBe(reached)
  expect(site.asked.length > before).toBe(reached)
  const place = { kind: 'browser', host: 'a.localhost', port: site.port }
  expect(await auditOf(server, body.interactionId)).toContainEqual({
    ...place,
    outcome: reached ? 'dialled' : 'refused',
    count: expect.any(Number),
  })
})
