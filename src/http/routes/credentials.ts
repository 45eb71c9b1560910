/** The credentials API: secrets are written here, and never read back. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ErrandError } from '../../domain/errors.ts'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { headers, idParam, list, page, pageSizeOf } from '../request/queries.ts'

const CREDENTIALS = '/v1beta/credentials'
const CREDENTIAL = `${CREDENTIALS}/:id(^[A-Za-z0-9_-]+)`

const listQuery = z.object({ ...page, order: list.order })

type ById = { Params: z.infer<typeof idParam> }

export function credentialRoutes(app: FastifyInstance, edge: Edge): void {
  const { credentials } = edge
  const { schemas } = edge.documented
  const shared = { tag: 'Credentials', headers: z.object(headers.revision) } as const

  app.post(
    CREDENTIALS,
    {
      config: { json: true },
      schema: keyed({
        ...shared,
        id: 'createCredential',
        summary: 'Store a credential',
        description:
          'Keeps a secret, encrypted, for the project’s runs to sign in with: MCP servers name it by `{"type": "credential", "credentialId": …}`. No call shows it again. The answer is 200 with what may be seen of it, and its `Location`.',
        body: schemas.newCredential,
        answer: schemas.credential,
        errors: ['conflict'],
      }),
    },
    async (request, reply) => {
      const { credential, warnings } = request.codec.credentials.decodeNew(request.body)
      const stored = await credentials.create(request.caller.projectId, credential)
      reply.header('Location', `${CREDENTIALS}/${stored.id}`)
      return request.codec.credentials.encode(stored, [...request.ignored, ...warnings])
    },
  )

  app.get<{ Querystring: z.infer<typeof listQuery> }>(
    CREDENTIALS,
    {
      schema: keyed({
        ...shared,
        id: 'listCredentials',
        summary: 'List credentials',
        description: 'The project’s credentials without their secrets, a page at a time, by creation time.',
        query: listQuery,
        answer: schemas.credentialList,
      }),
    },
    async (request) => {
      const { order = 'desc', pageToken } = request.query
      const identity = { path: CREDENTIALS, order }
      const { credentials: found, next } = await credentials.list(request.caller.projectId, {
        order,
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, pageToken),
      })
      return request.codec.credentials.encodeList(found, writePageToken(identity, next))
    },
  )

  app.get<ById>(
    CREDENTIAL,
    {
      schema: keyed({
        ...shared,
        id: 'getCredential',
        summary: 'Read about a credential',
        description: 'What it is for, where it may be sent, when it was used last; never the secret.',
        params: idParam,
        answer: schemas.credential,
        errors: ['not_found'],
      }),
    },
    async (request) => {
      const found = await credentials.find(request.caller.projectId, request.params.id)
      if (!found) throw noCredential(request.params.id)
      return request.codec.credentials.encode(found)
    },
  )

  app.patch<ById>(
    CREDENTIAL,
    {
      config: { json: true },
      schema: keyed({
        ...shared,
        id: 'updateCredential',
        summary: 'Rotate or change a credential',
        description:
          'What is absent stays, `null` clears; a new `token`, `password` … replaces the one there was, and running interactions use it from their next sign-in on.',
        params: idParam,
        body: schemas.credentialPatch,
        bodyTypes: ['application/json', 'application/merge-patch+json'],
        answer: schemas.credential,
        errors: ['not_found'],
      }),
    },
    async (request) => {
      const { change, warnings } = request.codec.credentials.decodePatch(request.body)
      const changed = await credentials.update(request.caller.projectId, request.params.id, change)
      return request.codec.credentials.encode(changed, [...request.ignored, ...warnings])
    },
  )

  app.delete<ById>(
    CREDENTIAL,
    {
      schema: keyed({
        ...shared,
        id: 'deleteCredential',
        summary: 'Delete a credential',
        description: 'The secret is gone at once; 404 from then on. Agents that name it go on without it.',
        params: idParam,
        answer: z.object({}),
        errors: ['not_found'],
      }),
    },
    async (request) => {
      if (!(await credentials.remove(request.caller.projectId, request.params.id))) {
        throw noCredential(request.params.id)
      }
      return {}
    },
  )
}

function noCredential(id: string): ErrandError {
  return new ErrandError('not_found', `There is no credential ${JSON.stringify(id)}.`)
}
