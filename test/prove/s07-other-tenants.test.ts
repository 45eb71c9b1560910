/**
 * S7: requests to every documented route with another tenant's key, with a revoked or expired key, with no key, or with
 * the session of another account.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addressIn, documentedRoutes, ownThings, type Route, type Things } from '../support/every-route.ts'
import { figure } from '../support/prove.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { comeIn, firstOwner, type Member, tokenOf } from '../support/visitor.ts'

type Headers = Readonly<Record<string, string>>

let server: Server
let owner: Member
/** Another tenant, with its own account. */
let stranger: Member
let routes: Route[]
/** The owner's resources, by path prefix. */
let things: Things
let strangersKey: string

beforeAll(async () => {
  server = await startServer({ config: { limits: { callsPerMinute: 1_000_000, interactionsPerMinute: 1_000_000 } } })
  owner = await firstOwner(server)
  await server.errand(['accounts', 'create', 'elsewhere'])
  const link = (await server.errand(['console', 'link', '--account', 'elsewhere'])).stdout.trim()
  stranger = await comeIn(server, tokenOf(link), 'stranger@example.org')
  await stranger.call('PATCH', `${stranger.account}/settings`, { experimental: { managedAgents: true } })
  strangersKey = (await server.errand(['keys', 'create', '--name', 'theirs', '--account', 'elsewhere'])).stdout.trim()
  things = await ownThings(server, owner)
  routes = (await documentedRoutes(server)).filter(({ scheme }) => scheme !== undefined)
})
afterAll(() => server?.stop())

/**
 * Addresses of the owner's resource and of a resource that does not exist. Undefined if the route names no resource.
 */
function addressesOf({ path }: Route): { readonly theirs: string; readonly nobodys: string } | undefined {
  if (!path.includes('{')) return undefined
  const nobodys = (name: string, own: string) =>
    name === 'version' ? '1' : (own.slice(0, 4) + '0'.repeat(22)).slice(0, 26)
  return { theirs: addressIn(path, things), nobodys: addressIn(path, things, nobodys) }
}

async function ask({ method, type, query }: Route, path: string, headers: Headers): Promise<Answer> {
  const body = type === undefined ? undefined : type === 'application/zip' ? 'PK' : '{}'
  const response = await fetch(server.url + path + query, {
    method,
    headers: { origin: server.url, 'x-errand-console': '1', ...(type && { 'content-type': type }), ...headers },
    body,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

/** The error body without the parts that differ between requests. */
function bodyOf(answer: Answer, path: string): string {
  const ids = path.split(/[/:]/).filter((part) => part.length > 3)
  return ids.reduce((text, id) => text.replaceAll(id, '…'), JSON.stringify(errorOf(answer)))
}

test('without a valid key or session, no response shows whether a resource exists', async () => {
  const issue = async () => (await owner.post(`${owner.project}/keys`, { name: 'short-lived' })).body
  const [revoked, expired] = [await issue(), await issue()]
  await owner.call('DELETE', `${owner.project}/keys/${revoked.info.id}`)
  await owner.post(`${owner.project}/keys/${expired.info.id}/rotate`, { overlapHours: 0 })
  const keys: Headers[] = [
    {},
    { 'x-svc-api-key': 'wrong' },
    { 'x-svc-api-key': revoked.key },
    { 'x-svc-api-key': expired.key },
  ]
  const sessions: Headers[] = [{}, { cookie: 'errand_session=forged.AAAA' }, { 'x-svc-api-key': server.key }]
  let asked = 0
  for (const route of routes) {
    const addresses = addressesOf(route) ?? { theirs: route.path, nobodys: route.path }
    for (const headers of route.scheme === 'apiKey' ? keys : sessions) {
      const answers = [await ask(route, addresses.theirs, headers), await ask(route, addresses.nobodys, headers)]
      for (const answer of answers) expect(answer.status, `${route.method} ${route.path}`).toBe(401)
      const [theirs, nobodys] = answers.map((answer) => errorOf(answer))
      expect(theirs).toEqual(nobodys)
      asked += answers.length
    }
  }
  expect(asked).toBeGreaterThan(300)
  figure('S7', 'calls without a valid key or session, all answered 401', asked)
})

test('another tenant’s resource gets the same response as one that does not exist, by key and by session', async () => {
  let asked = 0
  for (const route of routes) {
    const addresses = addressesOf(route)
    if (!addresses) continue
    const key = { 'x-svc-api-key': strangersKey }
    const session = { cookie: stranger.cookies() }
    const own = { ...session, 'x-errand-project': stranger.projectId }
    for (const headers of route.scheme === 'apiKey' ? [key, own] : [session]) {
      const [theirs, nobodys] = [
        await ask(route, addresses.theirs, headers),
        await ask(route, addresses.nobodys, headers),
      ]
      const what = `${route.method} ${route.path}`
      expect(nobodys.status, `${what}: ${nobodys.text}`).toBe(404)
      expect(theirs.status, `${what}: ${theirs.text}`).toBe(nobodys.status)
      expect(bodyOf(theirs, addresses.theirs), what).toBe(bodyOf(nobodys, addresses.nobodys))
      asked += 1
    }
  }
  expect(asked).toBeGreaterThan(40)
  figure('S7', 'routes called for objects of other tenants, all answered as if they did not exist', asked)
})

test('a session cannot access a project of another account, on any route', async () => {
  const headers = (project: string) => ({ cookie: stranger.cookies(), 'x-errand-project': project })
  for (const route of routes.filter(({ scheme }) => scheme === 'apiKey')) {
    const path = addressesOf(route)?.theirs ?? route.path
    const theirs = await ask(route, path, headers(owner.projectId))
    const nobodys = await ask(route, path, headers('prj_0000000000000000000000'))
    expect(theirs.status, `${route.method} ${route.path}`).toBe(404)
    expect(bodyOf(theirs, owner.projectId)).toBe(bodyOf(nobodys, 'prj_0000000000000000000000'))
  }
})

test('lists and new resources with another tenant’s key contain nothing of the owner’s', async () => {
  const ids = Object.values(things).flatMap((values) => Object.values(values).filter((value) => value.length > 9))
  for (const route of routes.filter(({ method, path }) => method === 'GET' && !path.includes('{'))) {
    const credentials: Headers =
      route.scheme === 'apiKey' ? { 'x-svc-api-key': strangersKey } : { cookie: stranger.cookies() }
    const { status, text } = await ask(route, route.path, credentials)
    expect(status, route.path).toBe(200)
    for (const id of ids) expect(text, route.path).not.toContain(id)
  }
})

test('all of the owner’s resources still exist', async () => {
  for (const [start, values] of Object.entries(things)) {
    if (!start.startsWith('/v1beta')) continue
    expect((await server.get(`${start}/${values.id ?? values.name}`)).status, start).toBe(200)
  }
  expect((await owner.get('/console/api/me')).status).toBe(200)
})
