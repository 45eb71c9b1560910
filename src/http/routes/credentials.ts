/** The credentials API. Secrets are written and never returned. */
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
          'Stores a secret encrypted, for the project’s runs to authenticate with. MCP servers refer to it as `{"type": "credential", "credentialId": …}`. The secret is never returned. Returns 200 with the credential’s other fields, and its path in `Location`.',
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
        description: 'Returns the project’s credentials in pages, by creation time, without their secrets.',
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
        summary: 'Read a credential',
        description:
          'Returns its type, the hosts that may receive it, and when it was last used. Never returns the secret.',
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
        summary: 'Update or rotate a credential',
        description:
          'Absent fields stay as they are, `null` clears a field. A new `token`, `password` … replaces the old one; running interactions use it the next time they authenticate.',
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
        description: 'Deletes the credential and its secret immediately. Agents that refer to it continue without it.',
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
