/** Checks sign-in to the console, sessions and their protection against other sites, roles, links and key scopes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { errorOf, type Server, startServer } from '../support/server.ts'
import { comeIn, createVisitor, firstOwner, invite, type Member, PASSWORD, tokenOf } from '../support/visitor.ts'

let server: Server
let owner: Member
let developer: Member
let viewer: Member
/** The owner of another account. */
let stranger: Member
beforeAll(async () => {
  server = await startServer({ config: { limits: { callsPerMinute: 1_000_000 } } })
  owner = await firstOwner(server)
  developer = await invite(server, owner, 'developer')
  viewer = await invite(server, owner, 'viewer')
  await server.errand(['accounts', 'create', 'elsewhere'])
  stranger = await comeIn(server, tokenOf(await link('--account', 'elsewhere')), 'stranger@example.org')
})
afterAll(() => server?.stop())

async function link(...options: string[]): Promise<string> {
  const { code, stdout, stderr } = await server.errand(['console', 'link', ...options])
  expect(code, stderr).toBe(0)
  return stdout.trim()
}

const signIn = '/console/auth/sign-in/email'

describe('the first link', () => {
  it('makes the person who opens it an owner, and works once', async () => {
    expect((await owner.get('/console/api/me')).body.accounts).toMatchObject([
      { name: 'default', role: 'owner', enabled: true },
    ])
    const token = /welcome#(\w+)/.exec(server.output())![1]
    const again = await createVisitor(server).post('/console/api/links/accept', {
      token,
      name: 'x',
      email: 'x@example.org',
      password: PASSWORD,
    })
    expect(errorOf(again).code).toBe('not_found')
    expect((await createVisitor(server).get('/console/api/sign-in-options')).body).toEqual({
      signUp: false,
      oidc: null,
      owned: true,
    })
  })

  it('can be created again by `errand console link`, and the database does not contain its token', async () => {
    const token = tokenOf(await link())
    expect((await createVisitor(server).post('/console/api/links/inspect', { token })).body).toMatchObject({
      kind: 'welcome',
      account: { name: 'default' },
      role: 'owner',
    })
    expect(await server.stored.text()).not.toContain(token)
  })
})

describe('signing in', () => {
  it('sets a cookie that scripts cannot read and other sites cannot use', async () => {
    const visitor = createVisitor(server)
    const { status, headers } = await visitor.post(signIn, { email: 'OWNER@example.org', password: PASSWORD })
    expect(status).toBe(200)
    const line = headers.getSetCookie().find((each) => each.startsWith('errand_session='))!
    expect(line).toMatch(/; HttpOnly/i)
    expect(line).toMatch(/; SameSite=Lax/i)
    expect(line).toMatch(/; Path=\/(;|$)/i)
    expect(line).not.toMatch(/domain=/i)
  })

  it('answers a wrong password and an unknown address the same way', async () => {
    const answers = await Promise.all(
      ['owner@example.org', 'nobody@example.org'].map((email) =>
        createVisitor(server).post(signIn, { email, password: 'not the password' }),
      ),
    )
    const [known, unknown] = answers.map((answer) => errorOf(answer))
    expect(known).toMatchObject({ status: 401, code: 'unauthenticated' })
    expect(unknown).toEqual(known)
  })

  it('is refused after too many failures, even with the right password, and only for that email address', async () => {
    await server.errand(['accounts', 'create', 'tried'])
    await comeIn(server, tokenOf(await link('--account', 'tried')), 'tried@example.org')
    const attempt = (password: string) => createVisitor(server).post(signIn, { email: 'tried@example.org', password })
    const refused = await Promise.all(Array.from({ length: 11 }, () => attempt('not the password')))
    expect(refused.filter(({ status }) => status === 429)).toHaveLength(1)
    expect(errorOf(await attempt(PASSWORD))).toMatchObject({ status: 429, code: 'rate_limited' })
    expect((await createVisitor(server).post(signIn, { email: 'viewer@example.org', password: PASSWORD })).status).toBe(
      401,
    )
  })

  it('ends the browser’s previous session, which prevents session fixation', async () => {
    const visitor = createVisitor(server)
    await visitor.post(signIn, { email: 'stranger@example.org', password: PASSWORD })
    const planted = visitor.cookies()
    await visitor.post(signIn, { email: 'stranger@example.org', password: PASSWORD })
    expect(visitor.cookies()).not.toBe(planted)
    expect((await createVisitor(server).get('/console/api/me', { cookie: planted })).status).toBe(401)
    expect((await visitor.get('/console/api/me')).status).toBe(200)
  })

  it.each([
    ['too short', 'short'],
    ['common', 'Password1234'],
    ['hardly varied', 'aaaaaaaaaaaab'],
  ])('refuses a password that is %s', async (_, password) => {
    const token = tokenOf((await owner.post(`${owner.account}/invites`, { role: 'viewer' })).body.link)
    const answer = await createVisitor(server).post('/console/api/links/accept', {
      token,
      name: 'n',
      email: 'new@example.org',
      password,
    })
    expect(errorOf(answer)).toMatchObject({ status: 400, param: 'password' })
    expect((await createVisitor(server).post('/console/api/links/inspect', { token })).status).toBe(200)
  })
})

describe('a session', () => {
  it('ends at sign-out, when it is revoked, and when the password changes', async () => {
    const open = async () => {
      const visitor = createVisitor(server)
      await visitor.post(signIn, { email: 'stranger@example.org', password: PASSWORD })
      return visitor
    }
    const [first, second, third] = [await open(), await open(), await open()]
    const cookie = first.cookies()
    expect((await first.post('/console/auth/sign-out')).status).toBe(200)
    expect((await createVisitor(server).get('/console/api/me', { cookie })).status).toBe(401)

    const { sessions } = (await second.get('/console/api/sessions')).body
    const own = sessions.find(({ current }: { current: boolean }) => current)
    expect((await third.call('DELETE', `/console/api/sessions/${own.id}`)).status).toBe(200)
    expect((await second.get('/console/api/me')).status).toBe(401)
    expect((await owner.call('DELETE', `/console/api/sessions/${sessions.at(-1).id}`)).status).toBe(404)

    const fourth = await open()
    const change = { currentPassword: PASSWORD, newPassword: `${PASSWORD}, changed` }
    expect((await third.post('/console/api/me/password', { ...change, currentPassword: 'wrong' })).status).toBe(400)
    expect((await third.post('/console/api/me/password', change)).status).toBe(200)
    expect((await fourth.get('/console/api/me')).status).toBe(401)
    expect((await third.get('/console/api/me')).status).toBe(200)
    await third.post('/console/api/me/password', { currentPassword: change.newPassword, newPassword: PASSWORD })
    stranger = { ...stranger, ...(await open()) }
  })

  it('is refused with a forged signature', async () => {
    const [name, value] = owner.cookies().split('=') as [string, string]
    for (const forged of [value.slice(0, 20), value.replace(/\..*/, '.AAAA'), `${value}x`, 'x', '']) {
      expect((await createVisitor(server).get('/console/api/me', { cookie: `${name}=${forged}` })).status).toBe(401)
    }
  })

  it('can call the API for projects of its accounts, and for no other project', async () => {
    const made = await owner.post('/v1beta/agents', { id: 'by-session' }, { 'x-errand-project': owner.projectId })
    expect(made.status, made.text).toBe(200)
    expect((await viewer.get('/v1beta/agents/by-session', { 'x-errand-project': owner.projectId })).status).toBe(200)
    const foreign = await stranger.get('/v1beta/agents', { 'x-errand-project': owner.projectId })
    const missing = await stranger.get('/v1beta/agents', { 'x-errand-project': 'prj_0000000000000000000000' })
    expect(errorOf(foreign)).toEqual({ ...errorOf(missing), message: errorOf(foreign).message })
    expect(foreign.status).toBe(404)
    expect((await createVisitor(server).get('/v1beta/agents', { 'x-errand-project': owner.projectId })).status).toBe(
      401,
    )
    const key = { 'x-svc-api-key': 'errand_sk_wrong' }
    expect((await owner.get('/v1beta/agents', { 'x-errand-project': owner.projectId, ...key })).status).toBe(401)
  })

  it('refuses every change that another site requests', async () => {
    const project = { 'x-errand-project': owner.projectId }
    const headers: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: server.url, 'sec-fetch-site': 'cross-site' },
      { origin: server.url, 'sec-fetch-site': 'same-site' },
      { origin: '' },
    ]
    for (const each of headers) {
      const api = await owner.call('DELETE', '/v1beta/agents/by-session', undefined, { ...project, ...each })
      expect(errorOf(api), JSON.stringify(each)).toMatchObject({ status: 403, code: 'permission_denied' })
      const own = await owner.call('POST', '/console/auth/sign-out', undefined, each)
      expect(errorOf(own)).toMatchObject({ status: 403, code: 'permission_denied' })
    }
    const { cookies } = owner
    const bare = await fetch(`${server.url}/console/auth/sign-out`, {
      method: 'POST',
      headers: { cookie: cookies(), origin: server.url },
    })
    expect(bare.status).toBe(403)
    expect(
      (await owner.get('/v1beta/agents/by-session', project)).headers.get('access-control-allow-origin'),
    ).toBeNull()
  })
})

describe('roles', () => {
  /** [method, path below the account or the project, body, lowest role that may call it] */
  const CALLS: [string, (member: Member) => string, unknown, 'viewer' | 'developer' | 'owner'][] = [
    ['GET', (m) => `${m.account}/members`, undefined, 'viewer'],
    ['GET', (m) => `${m.account}/projects`, undefined, 'viewer'],
    ['GET', (m) => `${m.account}/settings`, undefined, 'viewer'],
    ['GET', (m) => `${m.project}/keys`, undefined, 'viewer'],
    ['GET', (m) => `${m.project}/deliveries`, undefined, 'viewer'],
    ['GET', (m) => `${m.project}/mcp-servers`, undefined, 'viewer'],
    ['POST', (m) => `${m.project}/mcp-servers/check`, { name: 'x' }, 'developer'],
    ['POST', (m) => `${m.account}/projects`, { name: 'p' }, 'developer'],
    ['PATCH', (m) => m.project, { name: 'renamed' }, 'developer'],
    ['POST', (m) => `${m.project}/keys`, { name: 'k' }, 'developer'],
    ['POST', (m) => `${m.account}/invites`, { role: 'viewer' }, 'owner'],
    ['GET', (m) => `${m.account}/audit`, undefined, 'owner'],
    ['PATCH', (m) => `${m.account}/settings`, { experimental: { managedAgents: true } }, 'owner'],
    ['PATCH', (m) => `${m.account}/members/${m.userId}`, { role: 'owner' }, 'owner'],
  ]
  const RANKS = ['viewer', 'developer', 'owner']

  it.each(CALLS)(
    '%s %s is allowed from its lowest role upward, and returns 404 to other accounts',
    async (method, path, body, least) => {
      for (const [rank, member] of [viewer, developer, owner].entries()) {
        const address = path(owner).replace(owner.userId, viewer.userId)
        const answer = await member.call(method, address, body)
        if (rank < RANKS.indexOf(least))
          expect(errorOf(answer)).toMatchObject({ status: 403, code: 'permission_denied' })
        else expect([200, 409], `${RANKS[rank]}: ${answer.text}`).toContain(answer.status)
      }
      const hidden = await stranger.call(method, path(owner), body)
      expect(errorOf(hidden)).toMatchObject({ status: 404, code: 'not_found' })
      await owner.call('PATCH', `${owner.account}/members/${viewer.userId}`, { role: 'viewer' })
    },
  )

  it('a viewer can read through the API and change nothing', async () => {
    const project = { 'x-errand-project': owner.projectId }
    expect((await viewer.get('/v1beta/interactions', project)).status).toBe(200)
    const denied = await viewer.post('/v1beta/interactions', { instruction: 'hi' }, project)
    expect(errorOf(denied)).toMatchObject({ status: 403, code: 'permission_denied' })
  })

  it('the last owner cannot lose the role of owner', async () => {
    const self = `${owner.account}/members/${owner.userId}`
    expect(errorOf(await owner.call('DELETE', self)).code).toBe('conflict')
    expect(errorOf(await owner.call('PATCH', self, { role: 'viewer' })).code).toBe('conflict')
    await owner.call('PATCH', `${owner.account}/members/${developer.userId}`, { role: 'owner' })
    expect((await owner.call('PATCH', self, { role: 'owner' })).status).toBe(200)
    const both = [owner.call('DELETE', self), developer.call('DELETE', `${owner.account}/members/${developer.userId}`)]
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 409])
    const [left] = (
      await Promise.all(
        [owner, developer].map(async (m) => ((await m.get(`${owner.account}/members`)).status === 200 ? m : undefined)),
      )
    ).filter((m) => m !== undefined)
    const others = (await left!.get(`${owner.account}/members`)).body.members
    expect(others.filter(({ role }: { role: string }) => role === 'owner')).toHaveLength(1)
    for (const gone of [owner, developer].filter((m) => m !== left)) {
      const { body } = await left!.post(`${owner.account}/invites`, { role: 'owner' })
      expect((await gone.post('/console/api/links/accept', { token: tokenOf(body.link) })).status).toBe(200)
    }
    await owner.call('PATCH', `${owner.account}/members/${developer.userId}`, { role: 'developer' })
  })
})

describe('a password reset link', () => {
  it('sets a new password and ends the sessions; owners cannot make one for members of other accounts', async () => {
    const token = tokenOf((await owner.post(`${owner.account}/members/${viewer.userId}/reset-link`)).body.link)
    const changed = createVisitor(server)
    expect((await changed.post('/console/api/links/accept', { token, password: 'another sentence' })).status).toBe(200)
    expect((await viewer.get('/console/api/me')).status).toBe(401)
    expect((await changed.get('/console/api/me')).body.user.id).toBe(viewer.userId)
    viewer = { ...viewer, ...changed }

    const { body } = await owner.post(`${owner.account}/invites`, { role: 'viewer' })
    await stranger.post('/console/api/links/accept', { token: tokenOf(body.link) })
    const refused = await owner.post(`${owner.account}/members/${stranger.userId}/reset-link`)
    expect(errorOf(refused)).toMatchObject({ status: 409 })
    await owner.call('DELETE', `${owner.account}/members/${stranger.userId}`)
    const byOperator = await link('--reset-password', 'stranger@example.org')
    expect(byOperator).toMatch(/\/console\/reset#\w+$/)
  })
})

describe('an account', () => {
  it('is disabled until an owner enables it; until then its keys get 403', async () => {
    const { stdout } = await server.errand([
      'keys',
      'create',
      '--name',
      'k',
      '--project',
      'p',
      '--account',
      'elsewhere',
    ])
    const headers = { 'x-svc-api-key': stdout.trim() }
    expect(errorOf(await server.get('/v1beta/agents', headers)).code).toBe('feature_disabled')
    await stranger.call('PATCH', `${stranger.account}/settings`, { experimental: { managedAgents: true } })
    expect((await server.get('/v1beta/agents', headers)).status).toBe(200)
  })

  it('shows its owners an audit log with each action and who did it', async () => {
    const { body } = await owner.post(`${owner.project}/keys`, { name: 'logged' })
    await owner.call('DELETE', `${owner.project}/keys/${body.info.id}`)
    await createVisitor(server).post(signIn, { email: 'owner@example.org', password: 'not the password' })
    const log = async () => (await owner.get(`${owner.account}/audit?pageSize=100`)).body.entries
    await expect.poll(async () => (await log())[0].action).toBe('sign_in.failed')
    const entries = (await log()) as { action: string; target: string; actor: { email: string } | null }[]
    const ofKey = entries.filter(({ target }) => target === body.info.id).map(({ action }) => action)
    expect(ofKey).toEqual(['key.revoked', 'key.created'])
    expect(entries[1]!.actor).toMatchObject({ email: 'owner@example.org' })
    expect(entries.map(({ action }) => action)).toEqual(
      expect.arrayContaining([
        'member.joined',
        'member.role_changed',
        'invite.created',
        'account.created',
        'project.created',
      ]),
    )
  })
})

describe('a key', () => {
  it('can only do what its scope allows; the error differs from that of a disabled account', async () => {
    const issue = async (scope: string) => {
      const { body } = await owner.post(`${owner.project}/keys`, { name: scope, scope })
      return { 'x-svc-api-key': body.key as string }
    }
    const [read, invoke] = [await issue('read'), await issue('invoke')]
    expect((await server.get('/v1beta/agents', read)).status).toBe(200)
    expect(errorOf(await server.post('/v1beta/agents', {}, read)).code).toBe('permission_denied')
    expect(errorOf(await server.post('/v1beta/interactions', { instruction: 'x' }, read)).code).toBe(
      'permission_denied',
    )
    expect(errorOf(await server.get('/v1beta/agents', invoke)).code).toBe('permission_denied')
    expect(errorOf(await server.get('/v1beta/interactions', invoke)).code).toBe('permission_denied')
    const run = await server.post('/v1beta/interactions', { instruction: 'What is 2 + 3?', background: true }, invoke)
    expect(run.status, run.text).toBe(200)
    expect((await server.get(`/v1beta/interactions/${run.body.interactionId}`, invoke)).status).toBe(200)
    expect(errorOf(await server.get('/v1beta/nothing', invoke)).code).toBe('not_found')
  })

  it('is rotated with an overlap, after which the old key is refused', async () => {
    const { body: old } = await owner.post(`${owner.project}/keys`, { name: 'turning', scope: 'read' })
    const path = `${owner.project}/keys/${old.info.id}/rotate`
    const rotated = await owner.post(path, { overlapHours: 2 })
    expect(rotated.body.info).toMatchObject({ name: 'turning', scope: 'read', state: 'valid' })
    expect(rotated.body.replaced).toMatchObject({ id: old.info.id, state: 'valid', expireTime: expect.any(String) })
    for (const key of [old.key, rotated.body.key]) {
      expect((await server.get('/v1beta/agents', { 'x-svc-api-key': key })).status).toBe(200)
    }
    expect((await owner.post(path, { overlapHours: 0 })).status).toBe(200)
    expect((await server.get('/v1beta/agents', { 'x-svc-api-key': old.key })).status).toBe(401)
    expect(errorOf(await owner.post(path)).code).toBe('conflict')
  })
})
