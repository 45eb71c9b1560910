/** A project's API keys. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { KeyInfo } from '../../accounts/keys.ts'
import { ErrandError } from '../../domain/errors.ts'
import { forSession } from '../openapi/route-docs.ts'
import { check, wrongField } from '../request/fields.ts'
import { rfc3339 } from '../wire/time.ts'
import { type ConsoleDependencies, PROJECT, projectFor } from './dependencies.ts'
import { issuedKey, key, name, projectParams, scope } from './schemas.ts'

const HOUR_MS = 3_600_000

const newKey = z.object({
  name,
  scope: scope.optional(),
  expireTime: z.iso.datetime({ offset: true, error: 'must be a time by RFC 3339' }).nullish(),
})
const rotation = z.object({
  overlapHours: z
    .number()
    .min(0)
    .max(720)
    .optional()
    .meta({ description: 'Hours for which the old key stays valid. Default: 24.' }),
})
const keyParams = z.object({ projectId: z.string(), keyId: z.string() })

type OfProject = { Params: z.infer<typeof projectParams> }
type OfKey = { Params: z.infer<typeof keyParams> }

const config = { console: 'session' } as const

export function keyRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { keys } = dependencies.accounts
  const shared = { tag: 'Console', params: projectParams, errors: ['not_found'] } as const

  app.get<OfProject>(
    `${PROJECT}/keys`,
    {
      config,
      schema: forSession({
        ...shared,
        id: 'listKeys',
        summary: 'List keys',
        description:
          'Lists the project’s keys, oldest first, including revoked and expired ones. The keys themselves are never returned.',
        answer: z.object({ keys: z.array(key) }),
      }),
    },
    async (request) => {
      const { id } = await projectFor(dependencies, request, request.params.projectId, 'viewer')
      return { keys: (await keys.list(id)).map(showKey) }
    },
  )

  app.post<OfProject>(
    `${PROJECT}/keys`,
    {
      config: { ...config, json: true },
      schema: forSession({
        ...shared,
        id: 'createKey',
        summary: 'Create a key',
        description: 'Requires the role owner or developer. The key is returned only once; the server stores a hash.',
        body: newKey,
        answer: issuedKey,
      }),
    },
    async (request) => {
      const { id } = await projectFor(dependencies, request, request.params.projectId, 'developer')
      const { expireTime, ...asked } = check(newKey, request.body)
      const expiresAt = expireTime ? Date.parse(expireTime) : undefined
      if (expiresAt !== undefined && expiresAt <= Date.now()) throw wrongField('expireTime', 'must be in the future')
      const issued = await keys.issue(id, { ...asked, expiresAt }, request.visitor.userId)
      return { key: issued.key, info: showKey(issued.info) }
    },
  )

  app.post<OfKey>(
    `${PROJECT}/keys/:keyId/rotate`,
    {
      config: { ...config, json: 'optional' },
      schema: forSession({
        ...shared,
        id: 'rotateKey',
        params: keyParams,
        summary: 'Rotate a key',
        description:
          'Requires the role owner or developer. Creates a key with the same name, scope and expiry. The old key stays valid for `overlapHours`. Returns 409 if the old key is already revoked or expired.',
        body: rotation,
        answer: issuedKey.extend({ replaced: key }),
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      const { id } = await keyFor(dependencies, request)
      const { overlapHours = 24 } = check(rotation, request.body ?? {})
      const rotated = await keys.rotate(id, overlapHours * HOUR_MS, request.visitor.userId)
      if (!rotated) throw new ErrandError('conflict', 'The key is revoked or expired. Create a new one.')
      return { key: rotated.key, info: showKey(rotated.info), replaced: showKey(rotated.replaced) }
    },
  )

  app.delete<OfKey>(
    `${PROJECT}/keys/:keyId`,
    {
      config,
      schema: forSession({
        ...shared,
        id: 'revokeKey',
        params: keyParams,
        summary: 'Revoke a key',
        description:
          'Requires the role owner or developer. From now on each call with the key gets 401, on every node. Idempotent.',
        answer: key,
      }),
    },
    async (request) => {
      const { id } = await keyFor(dependencies, request)
      await keys.revoke(id, request.visitor.userId)
      return showKey((await keys.find(id))!)
    },
  )
}

async function keyFor(dependencies: ConsoleDependencies, request: FastifyRequest<OfKey>): Promise<KeyInfo> {
  const { projectId, keyId } = request.params
  const { id } = await projectFor(dependencies, request, projectId, 'developer')
  const found = await dependencies.accounts.keys.find(keyId)
  if (found?.projectId === id) return found
  throw new ErrandError('not_found', `There is no key ${JSON.stringify(keyId)} in this project.`)
}

function showKey({ id, name, prefix, scope, createdAt, lastUsedAt, expiresAt, revokedAt }: KeyInfo) {
  const time = (at: number | undefined) => (at === undefined ? null : rfc3339(at))
  const expired = expiresAt !== undefined && expiresAt <= Date.now()
  return {
    id,
    name,
    prefix,
    scope,
    createTime: rfc3339(createdAt),
    lastUsedTime: time(lastUsedAt),
    expireTime: time(expiresAt),
    revokeTime: time(revokedAt),
    state: revokedAt !== undefined ? 'revoked' : expired ? 'expired' : 'valid',
  }
}
