/** The signed-in visitor: their accounts, password and sessions. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { checkPassword } from '../../accounts/joining.ts'
import { ErrandError } from '../../domain/errors.ts'
import { originOf } from '../gate/session.ts'
import { forSession } from '../openapi/route-docs.ts'
import { check, wrongField } from '../request/fields.ts'
import { rfc3339 } from '../wire/time.ts'
import { CONSOLE, type ConsoleDependencies } from './dependencies.ts'
import { me, password, session } from './schemas.ts'
import { showVisitor } from './visitors.ts'

const tag = 'Console'
const done = z.object({})

const passwordChange = z.object({ currentPassword: password, newPassword: password })
const sessionParams = z.object({ sessionId: z.string() })

export function sessionRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { signIn } = dependencies
  const config = { console: 'session' } as const

  app.get(
    `${CONSOLE}/me`,
    {
      config,
      schema: forSession({
        id: 'getMe',
        tag,
        summary: 'Read the signed-in user',
        description: 'Returns the user with their accounts, roles and projects.',
        answer: me,
      }),
    },
    async (request) => showVisitor(dependencies, request.visitor),
  )

  app.post(
    `${CONSOLE}/me/password`,
    {
      config: { ...config, json: true },
      schema: forSession({
        id: 'changePassword',
        tag,
        summary: 'Change the password',
        description: 'Ends all other sessions of the user.',
        body: passwordChange,
        answer: done,
      }),
    },
    async (request) => {
      const { currentPassword, newPassword } = check(passwordChange, request.body)
      const { email, userId, sessionId } = request.visitor
      checkPassword(newPassword, email, 'newPassword')
      if (!(await signIn.isPassword(email, currentPassword, originOf(request)))) {
        throw wrongField('currentPassword', 'is not your password')
      }
      await signIn.setPassword(userId, newPassword, sessionId)
      return {}
    },
  )

  app.get(
    `${CONSOLE}/sessions`,
    {
      config,
      schema: forSession({
        id: 'listSessions',
        tag,
        summary: 'List own sessions',
        description: 'Lists the sessions of the signed-in user, newest first.',
        answer: z.object({ sessions: z.array(session) }),
      }),
    },
    async ({ visitor }) => {
      const sessions = await signIn.sessions(visitor.userId)
      return {
        sessions: sessions.map((each) => ({
          id: each.id,
          current: each.id === visitor.sessionId,
          createTime: rfc3339(each.createdAt),
          lastUsedTime: rfc3339(each.lastUsedAt),
          expireTime: rfc3339(each.expiresAt),
          ipAddress: each.ipAddress ?? null,
          userAgent: each.userAgent ?? null,
        })),
      }
    },
  )

  app.delete<{ Params: z.infer<typeof sessionParams> }>(
    `${CONSOLE}/sessions/:sessionId`,
    {
      config,
      schema: forSession({
        id: 'endSession',
        tag,
        summary: 'End a session',
        description: 'Ends one of the user’s own sessions immediately, on every node.',
        params: sessionParams,
        answer: done,
        errors: ['not_found'],
      }),
    },
    async ({ visitor, params }) => {
      const ended = await signIn.endSessions(visitor.userId, { only: params.sessionId })
      if (ended === 0) throw new ErrandError('not_found', `There is no session ${JSON.stringify(params.sessionId)}.`)
      return {}
    },
  )

  app.post(
    `${CONSOLE}/sessions/revoke-others`,
    {
      config,
      schema: forSession({
        id: 'endOtherSessions',
        tag,
        summary: 'End all other sessions',
        description: 'Ends all of the user’s sessions except this one.',
        answer: z.object({ revoked: z.int() }),
      }),
    },
    async ({ visitor }) => ({ revoked: await signIn.endSessions(visitor.userId, { but: visitor.sessionId }) }),
  )
}
