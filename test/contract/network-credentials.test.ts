/**
 * Checks `network.inject`: programs in the sandbox use a credential that nothing in the sandbox can read. Also checks
 * the operator's own certificate authority.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../../src/egress/certificate.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { auditOf } from '../support/audit.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { bash, python, type ToolRunner, toolRunner } from '../support/tool-run.ts'

const PATH = '/v1beta/interactions'
const SECRET = 'tok-3f9c1b7e5a2d4c6088aa'
/** Clears NO_PROXY: `*.localhost` resolves to this machine, and clients would bypass the proxy for it. */
const CLEAR = 'export NO_PROXY= no_proxy=;'
const PYTHON = `import os, urllib.request, urllib.error
os.environ.pop('NO_PROXY', 0); os.environ.pop('no_proxy', 0)
`

interface Asked {
  readonly path: string
  readonly authorization?: string
  readonly apiKey?: string
  readonly body: string
}

let directory: string
let site: HttpsServer
let port: number
let provider: FakeProvider
let server: Server
let run: ToolRunner
const asked: Asked[] = []
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'errand-ca-'))
  const authority = createAuthority('The operator’s own', ['localhost'])
  writeFileSync(join(directory, 'ca.pem'), authority.certificate)
  site = createServer(authority.issue('api.localhost'), async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const { authorization, 'x-api-key': apiKey } = request.headers
    const body = Buffer.concat(parts).toString()
    asked.push({ path: request.url!, authorization, apiKey: apiKey as string | undefined, body })
    if (request.url!.startsWith('/repo.git/info/refs')) response.end(`${'1'.repeat(40)}\trefs/heads/main\n`)
    else if (request.url!.startsWith('/repo.git/')) response.writeHead(404).end()
    else if (request.url === '/away') {
      response.writeHead(302, { location: `https://other.localhost:${port}/landed` }).end()
    } else {
      response.setHeader('x-seen', `${authorization}`)
      // The answer is sent in two parts, each with a part of the secret.
      response.write(`seen: ${authorization}`.slice(0, 20))
      setTimeout(() => response.end(`${`seen: ${authorization}`.slice(20)} ${request.headers['accept-encoding']}`), 20)
    }
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  port = (site.address() as AddressInfo).port
  provider = await openFakeProvider()
  server = await startServer({
    provider,
    config: { egress: { allowPrivate: [`127.0.0.1:${port}`], caFile: join(directory, 'ca.pem') } },
  })
  run = toolRunner(
    () => server,
    () => provider,
  )
  await server.post('/v1beta/credentials', { id: 'api', type: 'bearer', token: SECRET })
})
afterAll(async () => {
  await server.stop()
  await provider.close()
  site.close()
  site.closeAllConnections()
  rmSync(directory, { recursive: true })
})

const network = (more: object = {}) => {
  const host = `api.localhost:${port}`
  return { network: { allow: [host], inject: [{ host, credentialId: 'api', ...more }] } }
}
const url = (path = '/') => `https://api.localhost:${port}${path}`

describe('an injected credential', () => {
  it('replaces what curl, Python and Node send, and never enters the sandbox', async () => {
    asked.length = 0
    const { answer, body, outputs } = await run(
      [
        bash(
          `${CLEAR} curl -sS -D headers -H 'Authorization: Bearer mine' -H 'Accept-Encoding: gzip' -d posted ${url('/curl')}`,
        ),
        python(`${PYTHON}print(urllib.request.urlopen('${url('/python')}').read().decode())`),
        bash(`${CLEAR} node -e 'fetch("${url('/node')}").then((r) => r.text()).then(console.log)'`),
        bash(`cat headers; env; cat /proc/self/environ /proc/1/environ 2>/dev/null; cp headers outputs/`),
        bash(
          `grep -rl '${SECRET.slice(4, 12)}''${SECRET.slice(12)}' /workspace /tmp /run /dev/shm 2>/dev/null; echo searched`,
        ),
      ],
      network(),
    )
    expect(asked).toEqual([
      { path: '/curl', authorization: `Bearer ${SECRET}`, body: 'posted' },
      { path: '/python', authorization: `Bearer ${SECRET}`, body: '' },
      { path: '/node', authorization: `Bearer ${SECRET}`, body: '' },
    ])
    const masked = 'seen: Bearer [secret] identity'
    expect(outputs.slice(0, 3)).toEqual([masked, masked, masked])
    expect(outputs[3]).toContain('x-seen: Bearer [secret]')
    expect(outputs[4]).toBe('searched')
    expect(answer.text).not.toContain(SECRET)
    const file = await fetch(body.files[0].url)
    expect(await file.text()).not.toContain(SECRET)
    expect(server.output()).not.toContain(SECRET)
    expect(JSON.stringify(provider.requests)).not.toContain(SECRET)
    expect(body.resolved.network).toEqual({
      allow: [`api.localhost:${port}`],
      inject: [{ host: `api.localhost:${port}`, header: 'Authorization', credentialId: 'api' }],
    })
    const entry = { kind: 'sandbox', host: 'api.localhost', port, outcome: 'dialled', count: 3 }
    expect(await auditOf(server, body.interactionId)).toEqual([entry])
  })

  it('works with git', async () => {
    asked.length = 0
    const { outputs } = await run([bash(`${CLEAR} git ls-remote ${url('/repo.git')}`)], network())
    expect(outputs[0]).toBe(`${'1'.repeat(40)}\trefs/heads/main`)
    expect(new Set(asked.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${SECRET}`]))
  })

  it('is sent in another header and in the given `format`', async () => {
    asked.length = 0
    await run([bash(`${CLEAR} curl -sS ${url()}`)], network({ header: 'X-Api-Key', format: 'key={secret};v=1' }))
    expect(asked).toEqual([{ path: '/', apiKey: `key=${SECRET};v=1`, body: '' }])
  })

  it('is not sent to the target of a redirect, nor to another Host on the same address', async () => {
    asked.length = 0
    const { outputs } = await run(
      [
        bash(`${CLEAR} curl -sSL ${url('/away')} 2>&1 | tail -1`),
        bash(`${CLEAR} curl -sS -H 'Host: other.localhost:${port}' ${url('/hidden')}`),
      ],
      network(),
    )
    expect(outputs[0]).toContain('403')
    expect(outputs[1]).toContain('names another host')
    expect(asked.map(({ path }) => path)).toEqual(['/away'])
  })

  it('is looked up for each request, so nothing is sent after it was deleted', async () => {
    asked.length = 0
    await server.post('/v1beta/credentials', { id: 'short-lived', type: 'bearer', token: `${SECRET}-2` })
    const gone = new Promise<void>((resolve) => {
      site.once('request', async () => {
        await server.request('DELETE', '/v1beta/credentials/short-lived')
        resolve()
      })
    })
    const { outputs } = await run(
      [
        bash(`${CLEAR} curl -sS ${url('/first')} >/dev/null; echo asked`),
        bash(
          `${CLEAR} for i in $(seq 100); do curl -sS ${url('/second')} >last; grep -q Refused last && break; sleep 0.1; done; cat last`,
        ),
      ],
      network({ credentialId: 'short-lived' }),
    )
    await gone
    expect(outputs[1]).toBe(
      `Refused by the egress guard: api.localhost can't be signed in to: there is no credential "short-lived" any more.`,
    )
  })

  it('must exist in the same project and be allowed for the host', async () => {
    await server.post('/v1beta/credentials', {
      id: 'elsewhere',
      type: 'bearer',
      token: SECRET,
      allowedHosts: ['example.com'],
    })
    const other = { 'x-svc-api-key': await server.createKey('other') }
    const errors = [
      errorOf(await server.post(PATH, { instruction: 'x', ...network({ credentialId: 'none' }) })),
      errorOf(await server.post(PATH, { instruction: 'x', ...network() }, other)),
      errorOf(await server.post(PATH, { instruction: 'x', ...network({ credentialId: 'elsewhere' }) })),
    ]
    for (const error of errors) {
      expect(error).toMatchObject({ status: 400, param: 'network.inject[0].credentialId' })
    }
    expect(errors[0]!.message).toContain('there is no such credential')
    expect(errors[1]!.message).toContain('there is no such credential')
    expect(errors[2]!.message).toContain('may not be sent to')
  })
})

describe('a host whose certificate the operator’s CA signed', () => {
  it('is trusted for files by URL and by programs in the sandbox', async () => {
    asked.length = 0
    const { outputs } = await run([bash(`cat page; ${CLEAR} curl -sS ${url('/plain')}`)], {
      files: [{ name: 'page', url: url('/file') }],
      network: { allow: [`api.localhost:${port}`] },
    })
    expect(outputs[0]).toBe('seen: undefined identityseen: undefined undefined')
    expect(asked.map(({ path }) => path)).toEqual(['/file', '/plain'])
  })
})
