/** Authentication at MCP servers, and the protection of its secrets (S9 and S15 in docs/proof.md). */
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { type FakeMcp, openFakeMcp } from './fake-mcp.ts'

/** An authorization server that issues tokens 1, 2, 3 … and records the requests. */
interface TokenServer {
  readonly url: string
  readonly address: string
  readonly asked: { readonly form: URLSearchParams; readonly authorization: string | undefined }[]
  /** Lifetime of a token in seconds. */
  expiresIn: number | undefined
  /** Refresh tokens are valid once. */
  rotates: boolean
  close(): void
}

async function openTokenServer(): Promise<TokenServer> {
  const asked: TokenServer['asked'] = []
  const http: HttpServer = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const form = new URLSearchParams(text)
    asked.push({ form, authorization: request.headers.authorization })
    const n = asked.length
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        access_token: `access-token-number-${n}`,
        token_type: 'Bearer',
        expires_in: tokens.expiresIn,
        ...(tokens.rotates && { refresh_token: `refresh-token-number-${n}` }),
      }),
    )
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  const tokens: TokenServer = {
    url: `http://127.0.0.1:${port}/token`,
    address: `127.0.0.1:${port}`,
    asked,
    expiresIn: undefined,
    rotates: false,
    close: () => http.close(),
  }
  return tokens
}

let provider: FakeProvider
let mcp: FakeMcp
let elsewhere: FakeMcp
let tokens: TokenServer
let server: Server
beforeAll(async () => {
  ;[provider, mcp, elsewhere, tokens] = await Promise.all([
    openFakeProvider(),
    openFakeMcp(),
    openFakeMcp(),
    openTokenServer(),
  ])
  const allowPrivate = [mcp.address, elsewhere.address, tokens.address]
  server = await startServer({ provider, config: { egress: { allowPrivate } } })
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([mcp?.close(), elsewhere?.close(), tokens?.close(), provider?.close()])
})
afterEach(() => {
  mcp.requests.length = 0
  elsewhere.requests.length = 0
  tokens.asked.length = 0
  tokens.expiresIn = undefined
  tokens.rotates = false
  mcp.intercept = () => false
  mcp.onCall = ({ params }) => JSON.stringify(params.arguments)
})

let runs = 0
async function run(authentication: unknown, calls = 1, rest: object = {}) {
  const marker = `[sign-in ${++runs}]`
  const say = { toolCalls: [{ name: 'm__say', args: { n: 1 } }] }
  provider.when(marker, ...Array(calls).fill(say), { text: 'Done.' })
  const { status, body, text } = await server.post('/v1beta/interactions', {
    instruction: marker,
    mcp: [{ name: 'm', url: mcp.url, authentication }],
    ...rest,
  })
  return { status, body, text }
}

const sent = (name = 'authorization') => [...new Set(mcp.requests.map(({ headers }) => headers[name]))]

/** Makes the server accept only this token. */
function accept(token: () => string): void {
  mcp.intercept = ({ headers }, response) => {
    if (headers.authorization === `Bearer ${token()}`) return false
    response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()
    return true
  }
}

describe('a static secret', () => {
  it.each([
    ['none', { type: 'none' }, undefined],
    ['a bare token', 'tok-3n', 'Bearer tok-3n'],
    ['bearer', { type: 'bearer', token: 'tok-3n' }, 'Bearer tok-3n'],
    ['basic', { type: 'basic', username: 'ada', password: 'pw' }, 'Basic YWRhOnB3'],
    ['headers', { type: 'headers', headers: { Authorization: 'Token 17' } }, 'Token 17'],
    ['oauth2 with an access token', { type: 'oauth2', accessToken: 'at-9' }, 'Bearer at-9'],
  ])('%s is sent with every request', async (_name, authentication, header) => {
    const { body } = await run(authentication)
    expect(body).toMatchObject({ status: 'completed', warnings: [] })
    expect(sent()).toEqual([header])
    expect(mcp.requests.map(({ httpMethod }) => httpMethod)).toContain('DELETE')
  })

  it('causes a warning if the server refuses it, and the run continues', async () => {
    accept(() => 'another-one')
    const { body } = await run('tok-3n')
    expect(body.status).toBe('completed')
    expect(body.warnings).toMatchObject([
      { code: 'mcp_unavailable', message: expect.stringContaining('refused the sign-in') },
    ])
  })

  it.each([
    [{ type: 'bearer' }, 'mcp[0].authentication.token'],
    [{ type: 'bearer', token: 'a b' }, 'mcp[0].authentication'],
    [{ type: 'headers', headers: { Host: 'x' } }, 'mcp[0].authentication'],
    [{ type: 'oauth2', tokenUrl: 'ftp://x' }, 'mcp[0].authentication.tokenUrl'],
    [{ type: 'magic' }, 'mcp[0].authentication'],
    [7, 'mcp[0].authentication'],
  ])('%j is refused with 400 and its field', async (authentication, param) => {
    const answer = await server.post('/v1beta/interactions', {
      instruction: 'x',
      mcp: [{ name: 'm', url: mcp.url, authentication }],
    })
    expect(errorOf(answer)).toMatchObject({ status: 400, param: expect.stringContaining(param) })
  })
})

describe('oauth2', () => {
  it('gets a token with client credentials', async () => {
    accept(() => 'access-token-number-1')
    const secret = {
      type: 'oauth2',
      clientId: 'errand',
      clientSecret: 'cs-1',
      tokenUrl: tokens.url,
      scopes: ['a', 'b'],
    }
    const { body } = await run(secret)
    expect(body).toMatchObject({ status: 'completed', warnings: [] })
    expect(tokens.asked).toHaveLength(1)
    const { form, authorization } = tokens.asked[0]!
    expect(form.get('grant_type')).toBe('client_credentials')
    expect(form.get('scope')).toBe('a b')
    expect(`${authorization} ${form}`).toMatch(/ZXJyYW5kOmNzLTE|client_secret=cs-1/)
  })

  it('refreshes the token when the server refuses it during a run', async () => {
    tokens.rotates = true
    let good = 'access-token-number-1'
    accept(() => good)
    mcp.onCall = () => {
      good = 'access-token-number-2'
      return 'called'
    }
    const secret = { type: 'oauth2', refreshToken: 'refresh-0', clientId: 'errand', tokenUrl: tokens.url }
    const { body } = await run(secret, 2)
    expect(body).toMatchObject({ status: 'completed', warnings: [] })
    expect(mcp.calls().filter(({ headers }) => headers.authorization === `Bearer ${good}`)).toHaveLength(1)
    expect(tokens.asked.map(({ form }) => form.get('refresh_token'))).toEqual(['refresh-0', 'refresh-token-number-1'])
  })

  it('refreshes a token before it expires', async () => {
    tokens.expiresIn = 5
    const secret = { type: 'oauth2', refreshToken: 'refresh-0', tokenUrl: tokens.url }
    await run(secret, 2)
    // A token of five seconds counts as expired, so each request gets a new one.
    expect(tokens.asked.length).toBeGreaterThan(3)
  })

  it('stores a refreshed token in the credential for the next run', async () => {
    tokens.rotates = true
    tokens.expiresIn = 3_600
    await server.post('/v1beta/credentials', {
      id: 'renewed',
      type: 'oauth2',
      refreshToken: 'refresh-0',
      clientId: 'errand',
      tokenUrl: tokens.url,
      allowedHosts: [mcp.address],
    })
    accept(() => 'access-token-number-1')
    const credential = { type: 'credential', credentialId: 'renewed' }
    expect((await run(credential)).body.warnings).toEqual([])
    expect((await run(credential)).body.warnings).toEqual([])
    expect(tokens.asked).toHaveLength(1)
    accept(() => 'access-token-number-2')
    // Four concurrent runs refresh it once: the refresh token is valid once.
    const together = await Promise.all([1, 2, 3, 4].map(() => run(credential)))
    expect(together.map(({ body }) => body.warnings)).toEqual([[], [], [], []])
    expect(tokens.asked.map(({ form }) => form.get('refresh_token'))).toEqual(['refresh-0', 'refresh-token-number-1'])
    const { body } = await server.get('/v1beta/credentials/renewed')
    expect(body.lastUsedTime).toBeDefined()
    expect(Date.parse(body.updateTime)).toBeGreaterThan(Date.parse(body.createTime))
  })

  it('requests authorization without a token, and warns if the server requires a person to sign in', async () => {
    const base = new URL(mcp.url).origin
    mcp.intercept = ({ url, headers, httpMethod }, response) => {
      const path = url.split('?')[0]!
      if (path === '/.well-known/oauth-authorization-server') {
        response.setHeader('content-type', 'application/json')
        response.end(
          JSON.stringify({
            issuer: `${base}/`,
            authorization_endpoint: `${base}/authorize`,
            token_endpoint: tokens.url,
            registration_endpoint: `${base}/register`,
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
          }),
        )
      } else if (path === '/register' && httpMethod === 'POST') {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ client_id: 'c', redirect_uris: ['http://127.0.0.1/callback'] }))
      } else if (path === '/authorize') response.end('<form>Your password?</form>')
      else if (path.startsWith('/.well-known/')) response.writeHead(404).end()
      else if (headers.authorization === undefined) response.writeHead(401).end()
      else return false
      return true
    }
    const { body } = await run({ type: 'oauth2' })
    expect(body.status).toBe('completed')
    expect(body.warnings).toMatchObject([{ message: expect.stringContaining('requires a person to sign in') }])
    expect(tokens.asked).toEqual([])
  })

  it('sends no secret to an address that a server names', async () => {
    const evil = elsewhere.url.replace('127.0.0.1', 'localhost')
    const origin = new URL(evil).origin
    mcp.intercept = ({ url, headers }, response) => {
      const base = new URL(mcp.url).origin
      if (url.startsWith('/.well-known/oauth-protected-resource')) {
        response.end(JSON.stringify({ resource: mcp.url, authorization_servers: [origin] }))
      } else if (headers.authorization === undefined) {
        const where = `${base}/.well-known/oauth-protected-resource`
        response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${where}"` }).end()
      } else return false
      return true
    }
    const { body } = await run({ type: 'oauth2', refreshToken: 'refresh-0', clientId: 'errand', clientSecret: 'cs-1' })
    expect(body.warnings).toMatchObject([{ message: expect.stringContaining('is not confirmed') }])
    const bodies = JSON.stringify(elsewhere.requests)
    expect(bodies).not.toContain('refresh-0')
    expect(bodies).not.toContain('cs-1')
  })
})

describe('a credential', () => {
  it('is sent only to its own hosts, and only by runs of its own project', async () => {
    await server.post('/v1beta/credentials', {
      id: 'bound',
      type: 'bearer',
      token: 'tok-b',
      allowedHosts: ['a.example'],
    })
    await server.post('/v1beta/credentials', {
      id: 'fits',
      type: 'bearer',
      token: 'tok-f',
      allowedHosts: [mcp.address],
    })
    const bound = await run({ type: 'credential', credentialId: 'bound' })
    expect(bound.body.warnings).toMatchObject([
      { code: 'mcp_unavailable', param: 'mcp[0].authentication.credentialId' },
    ])
    const missing = await run({ type: 'credential', credentialId: 'nobodys' })
    expect(missing.body.warnings).toMatchObject([{ code: 'mcp_unavailable' }])
    expect(mcp.requests).toEqual([])
    expect((await run({ type: 'credential', credentialId: 'fits' })).body.warnings).toEqual([])
    expect(sent()).toEqual(['Bearer tok-f'])
    const stranger = { 'x-svc-api-key': await server.createKey('stranger') }
    const { body } = await server.post(
      '/v1beta/interactions',
      {
        instruction: '[sign-in 1]',
        background: true,
        mcp: [{ name: 'm', url: mcp.url, authentication: { type: 'credential', credentialId: 'fits' } }],
      },
      stranger,
    )
    expect(body.warnings).toMatchObject([{ message: expect.stringContaining('there is no credential "fits"') }])
  })

  it('of an agent is used by its runs', async () => {
    await server.post('/v1beta/credentials', { id: 'of-agent', type: 'bearer', token: 'tok-agent' })
    const authentication = { type: 'credential', credentialId: 'of-agent' }
    await server.post('/v1beta/agents', { id: 'tracker', mcp: [{ name: 'm', url: mcp.url, authentication }] })
    const marker = `[sign-in ${++runs}]`
    provider.when(marker, { toolCalls: [{ name: 'm__say', args: {} }] }, { text: 'Done.' })
    const { body } = await server.post('/v1beta/interactions', { instruction: marker, agentId: 'tracker' })
    expect(body.resolved.mcp).toEqual([{ name: 'm', url: mcp.url, authentication }])
    expect(sent()).toEqual(['Bearer tok-agent'])
  })

  it('that was replaced is used by the next run', async () => {
    await server.post('/v1beta/credentials', { id: 'rotating', type: 'bearer', token: 'tok-old' })
    await server.request('PATCH', '/v1beta/credentials/rotating', { token: 'tok-new' })
    await run({ type: 'credential', credentialId: 'rotating' })
    expect(sent()).toEqual(['Bearer tok-new'])
  })
})
