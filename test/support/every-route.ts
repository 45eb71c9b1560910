/**
 * Every documented route of a server, and resources to use in their addresses. For tests that send requests to all
 * routes.
 */
import { expect } from 'vitest'
import { EVERYTHING } from './openapi.ts'
import type { Server } from './server.ts'
import type { Member } from './visitor.ts'
import { zip } from './zip.ts'

export interface Route {
  readonly method: string
  readonly path: string
  /** Kind of credential that the route needs. Undefined if it needs none. */
  readonly scheme: 'apiKey' | 'session' | undefined
  readonly type: string | undefined
  /** Required query parameters. */
  readonly query: string
}

/** Values of required query parameters. */
const QUERY: Readonly<Record<string, string>> = { path: 'SKILL.md' }

/** Existing resources, by the prefix of the path that names them. */
export type Things = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Creates one resource of each kind, owned by `owner`. */
export async function ownThings(server: Server, owner: Member): Promise<Things> {
  const agent = (await server.post('/v1beta/agents', {})).body.id
  const run = (await server.post('/v1beta/interactions', { instruction: 'What is 2 + 3?' })).body.interactionId
  const secret = { name: 'secret', type: 'bearer', token: 'hush', allowedHosts: ['example.org'] }
  const credential = (await server.post('/v1beta/credentials', secret)).body.id
  const skill = '---\nname: mine\ndescription: of the owner\n---\nhi'
  const upload = await fetch(`${server.url}/v1beta/skills`, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, 'content-type': 'application/zip' },
    body: new Uint8Array(zip([{ name: 'SKILL.md', data: skill }])),
  })
  expect(upload.status).toBe(200)
  const invite = (await owner.post(`${owner.account}/invites`, { role: 'viewer' })).body.invite.id
  const key = (await owner.post(`${owner.project}/keys`, { name: 'mine' })).body.info.id
  const accountId = owner.account.split('/').at(-1)!
  const session = (await owner.get('/console/api/sessions')).body.sessions[0].id
  return {
    '/v1beta/agents': { id: agent, version: '1' },
    '/v1beta/interactions': { id: run },
    '/v1beta/credentials': { id: credential },
    '/v1beta/skills': { name: 'mine', version: '1' },
    '/console/api/accounts': { accountId, userId: owner.userId, inviteId: invite },
    '/console/api/projects': { projectId: owner.projectId, keyId: key },
    '/console/api/sessions': { sessionId: session },
  }
}

/** Every route of the server's own OpenAPI document, so that new routes are always included. */
export async function documentedRoutes(server: Server): Promise<Route[]> {
  const { paths } = (await server.get(EVERYTHING)).body
  return Object.entries<object>(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { security, requestBody, parameters }]) => {
      const scheme = Object.keys(security[0] ?? {})[0] as Route['scheme']
      const [type] = Object.keys(requestBody?.content ?? {})
      return { method: method.toUpperCase(), path, scheme, type, query: scheme ? queryOf(path, parameters ?? []) : '' }
    }),
  )
}

function queryOf(path: string, parameters: readonly { in: string; name: string; required?: boolean }[]): string {
  const required = parameters.filter((parameter) => parameter.in === 'query' && parameter.required)
  const values = required.map(({ name }) => {
    expect(QUERY[name], `${path}: give this test a value for ?${name}`).toBeDefined()
    return `${name}=${QUERY[name]}`
  })
  return values.length > 0 ? `?${values.join('&')}` : ''
}

/** The path with each parameter replaced by the owner's resource, or by what `value` returns for it. */
export function addressIn(path: string, things: Things, value = (_name: string, own: string) => own): string {
  const [, values] = Object.entries(things).find(([start]) => path.startsWith(`${start}/{`)) ?? []
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    expect(values?.[name], `${path}: give this test one of the owner's for {${name}}`).toBeDefined()
    return value(name, values![name]!)
  })
}
