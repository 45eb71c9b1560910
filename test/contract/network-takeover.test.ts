/** Checks that the next server opens the network of a run again on the same sandbox after its server was killed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createAuthority } from '../../src/egress/certificate.ts'
import { openFakeProvider } from '../fake-provider.ts'
import { auditOf } from '../support/audit.ts'
import { startServer } from '../support/server.ts'
import { outputsOf } from '../support/tool-run.ts'

const SECRET = 'tok-8d1e6f20b9474ac3'
const env = { ERRAND_LEASE_S: '2' }

test('a session from before the crash reaches its hosts after it, with the injected credential', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'errand-ca-'))
  const authority = createAuthority('The operator’s own', ['localhost'])
  writeFileSync(join(directory, 'ca.pem'), authority.certificate)
  const seen: (string | undefined)[] = []
  const site = createServer(authority.issue('api.localhost'), ({ headers }, response) => {
    seen.push(headers.authorization)
    response.end('served')
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  const { port } = site.address() as AddressInfo
  const provider = await openFakeProvider()
  const config = { egress: { allowPrivate: [`127.0.0.1:${port}`], caFile: join(directory, 'ca.pem') } }
  let server = await startServer({ provider, config, env })
  const { dataDir, key } = server
  try {
    await server.post('/v1beta/credentials', { id: 'api', type: 'bearer', token: SECRET })
    const hold = Promise.withResolvers<void>()
    const call = (code: string) => ({ toolCalls: [{ name: 'code_execution', args: { code } }] })
    const again = call('print(count, get())')
    provider.when(
      '[twice]',
      call(`import os, urllib.request
os.environ.pop('NO_PROXY'); os.environ.pop('no_proxy')
def get(): return urllib.request.urlopen('https://api.localhost:${port}/').read().decode()
count = 1
print(get())`),
      [{ hold: hold.promise, ...again }, again],
      { text: 'Done.' },
    )
    const host = `api.localhost:${port}`
    const { body } = await server.post('/v1beta/interactions', {
      instruction: '[twice]',
      tools: ['code_execution'],
      background: true,
      network: { allow: [host], inject: [{ host, credentialId: 'api' }] },
    })
    const stream = await server.stream(`/v1beta/interactions/${body.id}:stream`)
    for await (const { event } of stream.events) if (event === 'tool_result') break
    stream.drop()
    await server.stop('SIGKILL')
    server = await startServer({ provider, dataDir, key, env })
    hold.resolve()
    await (await server.stream(`/v1beta/interactions/${body.id}:stream`)).all()
    const ended = await server.get(`/v1beta/interactions/${body.id}`)
    expect(outputsOf(ended.body.executionTrace)).toEqual(['served', '1 served'])
    expect(seen).toEqual([`Bearer ${SECRET}`, `Bearer ${SECRET}`])
    // Each worker writes its own audit entry.
    const entry = { kind: 'sandbox', host: 'api.localhost', port, outcome: 'dialled', count: 1 }
    expect(await auditOf(server, body.id)).toEqual([entry, entry])
  } finally {
    await server.stop()
    await provider.close()
    site.close()
    site.closeAllConnections()
    for (const path of [directory, dataDir]) rmSync(path, { recursive: true, force: true })
  }
})
