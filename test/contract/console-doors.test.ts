/**
 * Checks the sign-in options that an operator configures: an identity provider, sign-up, trusted proxies, and HTTPS.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type IdentityProvider, openIdentityProvider } from '../support/identity-provider.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { createVisitor, firstOwner, type Member, PASSWORD, tokenOf, type Visitor } from '../support/visitor.ts'

const LIMITS = { callsPerMinute: 1_000_000 }
const signIn = '/console/auth/sign-in/email'

describe('an identity provider', () => {
  let idp: IdentityProvider
  let server: Server
  let owner: Member
  beforeAll(async () => {
    idp = await openIdentityProvider()
    const config = { limits: LIMITS, console: { oidc: idp.config, signUp: true } }
    server = await startServer({ config })
    idp.open(server.url)
    owner = await firstOwner(server)
  })
  afterAll(async () => {
    await server?.stop()
    await idp?.close()
  })

  /** Signs in through the provider's pages as a browser does. Returns the visitor and the address where it arrives. */
  async function comeInBy(login: string, visitor: Visitor = createVisitor(server), body: object = {}) {
    const begun = await visitor.post('/console/auth/sign-in/oidc', body)
    expect(begun.status, begun.text).toBe(200)
    const back = await throughProvider(begun.body.url, login)
    expect(back.startsWith(`${server.url}/console/auth/callback/oidc?`)).toBe(true)
    const { status, headers } = await visitor.get(back.slice(server.url.length))
    expect(status).toBe(302)
    return { visitor, back, location: headers.get('location')! }
  }

  it('is offered by its name and signs in its users', async () => {
    expect((await createVisitor(server).get('/console/api/sign-in-options')).body.oidc).toEqual({ name: 'Example ID' })
    const { visitor, location } = await comeInBy('carol', undefined, { callbackURL: '/console/keys' })
    expect(new URL(location, server.url).pathname).toBe('/console/keys')
    const me = (await visitor.get('/console/api/me')).body
    expect(me).toMatchObject({ user: { name: 'carol', email: 'carol@example.org' }, accounts: [] })
  })

  it('signs the same person in as the same user; an invitation makes them a member', async () => {
    const first = await comeInBy('dave')
    const { id } = (await first.visitor.get('/console/api/me')).body.user
    const { body } = await owner.post(`${owner.account}/invites`, { role: 'developer' })
    expect((await first.visitor.post('/console/api/links/accept', { token: tokenOf(body.link) })).status).toBe(200)
    const again = await comeInBy('dave')
    const me = (await again.visitor.get('/console/api/me')).body
    expect(me).toMatchObject({ user: { id }, accounts: [{ role: 'developer' }] })
  })

  it('does not sign anyone in as an existing user: neither with an unverified address, nor with one that somebody else registered', async () => {
    for (const vouches of [false, true]) {
      idp.vouches = vouches
      // The person who signed up first with this address knows its password.
      const login = `taken-${vouches}`
      const squatter = createVisitor(server)
      const email = `${login}@example.org`
      expect((await squatter.post('/console/api/sign-up', { name: 'x', email, password: PASSWORD })).status).toBe(200)
      const { visitor, location } = await comeInBy(login)
      expect((await visitor.get('/console/api/me')).status).toBe(401)
      expect(new URL(location, server.url).searchParams.get('error')).toBeTruthy()
    }
    idp.vouches = true
  })

  it('is trusted only for the browser that started the sign-in, and only once', async () => {
    const { back, visitor } = await comeInBy('erin')
    const path = back.slice(server.url.length)
    const other = createVisitor(server)
    await other.get(path)
    expect((await other.get('/console/api/me')).status).toBe(401)
    await visitor.post('/console/auth/sign-out')
    await visitor.get(path)
    expect((await visitor.get('/console/api/me')).status).toBe(401)
  })

  it.each(['https://evil.example/', '//evil.example', '/console/../v1beta/x', '/console\\@evil.example'])(
    'refuses to redirect to %s',
    async (callbackURL) => {
      const answer = await createVisitor(server).post('/console/auth/sign-in/oidc', { callbackURL })
      expect(errorOf(answer)).toMatchObject({ status: 400, param: 'callbackURL' })
    },
  )
})

/** Signs in on the provider's own pages and consents. Returns the address that the provider redirects to. */
async function throughProvider(start: string, login: string): Promise<string> {
  const jar = new Map<string, string>()
  const go = async (url: string, body?: URLSearchParams) => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { method: body ? 'POST' : 'GET', body, redirect: 'manual', headers: { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      jar.set(name!, value!)
    }
    return answer
  }
  const { origin } = new URL(start)
  let url = start
  for (let steps = 0; steps < 12; steps++) {
    let answer = await go(url)
    if (!answer.headers.has('location')) {
      const page = await answer.text()
      const [action, prompt] = [/action="([^"]+)"/.exec(page)![1]!, /name="prompt" value="(\w+)"/.exec(page)![1]!]
      answer = await go(new URL(action, url).href, new URLSearchParams({ prompt, login, password: 'x' }))
    }
    url = new URL(answer.headers.get('location')!, url).href
    if (new URL(url).origin !== origin) return url
  }
  throw new Error(`the provider did not come to an end: ${url}`)
}

describe('sign-up', () => {
  const person = { name: 'Ann', email: 'ann@example.org', password: PASSWORD }

  it('is closed unless the operator enables it', async () => {
    const server = await startServer({ config: { limits: LIMITS } })
    expect(errorOf(await createVisitor(server).post('/console/api/sign-up', person))).toMatchObject({ status: 404 })
    await server.stop()
  })

  it('creates an account in which nothing runs until its owner enables it', async () => {
    const server = await startServer({ config: { limits: LIMITS, console: { signUp: true } } })
    const visitor = createVisitor(server)
    const { status, body, text } = await visitor.post('/console/api/sign-up', { ...person, accountName: 'Ann’s' })
    expect(status, text).toBe(200)
    expect(body.accounts).toMatchObject([
      { name: 'Ann’s', role: 'owner', enabled: false, projects: [{ name: 'default' }] },
    ])
    const [account] = body.accounts
    const headers = { 'x-errand-project': account.projects[0].id }
    expect(errorOf(await visitor.get('/v1beta/agents', headers)).code).toBe('feature_disabled')
    const on = { experimental: { managedAgents: true } }
    await visitor.call('PATCH', `/console/api/accounts/${account.id}/settings`, on)
    expect((await visitor.get('/v1beta/agents', headers)).status).toBe(200)
    // The address is registered now; only its password proves who owns it.
    const other = await createVisitor(server).post('/console/api/sign-up', { ...person, password: `not ${PASSWORD}` })
    expect(errorOf(other)).toMatchObject({ status: 401, code: 'unauthenticated' })
    await server.stop()
  })
})

describe('the client address at sign-in', () => {
  const wrong = (server: Server, from: string, name: string) =>
    createVisitor(server).post(
      signIn,
      { email: `${name}@example.org`, password: 'not the password' },
      { 'x-forwarded-for': from },
    )
  /** Returns the client address that the server recorded for the session. */
  async function addressSeen(server: Server, from: string): Promise<string> {
    const visitor = createVisitor(server)
    await visitor.post(signIn, { email: 'owner@example.org', password: PASSWORD }, { 'x-forwarded-for': from })
    const { sessions } = (await visitor.get('/console/api/sessions')).body
    return sessions.find(({ current }: { current: boolean }) => current).ipAddress
  }

  it('is the one that a trusted proxy reports, and failures are counted for that address', async () => {
    const server = await startServer({ config: { limits: LIMITS, trustedProxies: ['127.0.0.1/32'] } })
    await firstOwner(server)
    expect(await addressSeen(server, '203.0.113.9')).toBe('203.0.113.9')
    // A value that the visitor sends comes before the one that the proxy appends.
    expect(await addressSeen(server, '198.51.100.1, 203.0.113.9')).toBe('203.0.113.9')
    // Ten failures are allowed for one email address. Refused attempts after that also count for the client address.
    const tries = await Promise.all(Array.from({ length: 100 }, () => wrong(server, '203.0.113.7', 'first')))
    expect(tries.filter(({ status }) => status === 401)).toHaveLength(10)
    expect((await wrong(server, '198.51.100.1, 203.0.113.7', 'second')).status).toBe(429)
    expect((await wrong(server, '203.0.113.8', 'second')).status).toBe(401)
    expect((await wrong(server, '203.0.113.8', 'first')).status).toBe(429)
    await server.stop()
  })

  it('is counted by its first 64 bits for IPv6, because one client controls the rest', async () => {
    const server = await startServer({ config: { limits: LIMITS, trustedProxies: ['127.0.0.1/32'] } })
    await firstOwner(server)
    await Promise.all(Array.from({ length: 100 }, (_, i) => wrong(server, `2001:db8:0:1::${i}`, 'first')))
    expect((await wrong(server, '2001:db8:0:1:ffff:ffff:ffff:ffff', 'another')).status).toBe(429)
    expect((await wrong(server, '2001:db8:0:2::1', 'another')).status).toBe(401)
    // An IPv4-mapped IPv6 address counts alone.
    await Promise.all(Array.from({ length: 100 }, () => wrong(server, '::ffff:203.0.113.7', 'first')))
    expect((await wrong(server, '::ffff:203.0.113.7', 'third')).status).toBe(429)
    expect((await wrong(server, '::ffff:203.0.113.8', 'third')).status).toBe(401)
    await server.stop()
  })

  it('is the address of the connection if the proxy is not trusted', async () => {
    const server = await startServer({ config: { limits: LIMITS, trustedProxies: ['203.0.113.0/24'] } })
    await firstOwner(server)
    expect(await addressSeen(server, '203.0.113.9')).toBe('127.0.0.1')
    await server.stop()
  })

  it('stops the start with an error that names the setting if a range is invalid', async () => {
    await expect(startServer({ config: { trustedProxies: ['everybody'] } })).rejects.toThrow(/trustedProxies/)
  })
})

describe('behind HTTPS', () => {
  it('the session cookie is not sent over plain connections or to other hosts', async () => {
    const server = await startServer({ env: { ERRAND_PUBLIC_URL: 'https://errand.example' } })
    const token = /\/console\/welcome#(\w+)/.exec(server.output())![1]
    const person = { token, name: 'Ann', email: 'ann@example.org', password: PASSWORD }
    const headers = { origin: 'https://errand.example' }
    const { status, headers: answered } = await createVisitor(server).post('/console/api/links/accept', person, headers)
    expect(status).toBe(200)
    const line = answered.getSetCookie().find((each) => each.includes('errand_session='))!
    expect(line).toMatch(/^__Host-errand_session=/)
    for (const attribute of [/; Secure/i, /; HttpOnly/i, /; SameSite=Lax/i, /; Path=\/(;|$)/i])
      expect(line).toMatch(attribute)
    expect(line).not.toMatch(/domain=/i)
    await server.stop()
  })
})
