/** One-time links (welcome, invitation, password reset), and sign-up. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ErrandError } from '../../domain/errors.ts'
import { originOf } from '../gate/session.ts'
import { open } from '../openapi/route-docs.ts'
import { check } from '../request/fields.ts'
import { rfc3339 } from '../wire/time.ts'
import { CONSOLE, type ConsoleDependencies } from './dependencies.ts'
import { email, linkInfo, me, name, password, token } from './schemas.ts'
import { showNewVisitor } from './visitors.ts'

const tag = 'Console'

const oneToken = z.object({ token })
const acceptance = z.object({ token, name: name.optional(), email: email.optional(), password: password.optional() })
const newAccount = z.object({ name, email, password, accountName: name.optional() })

export function linkRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { signIn, joining } = dependencies
  const postOpen = { console: 'open', json: true } as const

  app.post(
    `${CONSOLE}/links/inspect`,
    {
      config: postOpen,
      schema: open({
        id: 'inspectLink',
        tag,
        summary: 'Read a one-time link',
        description: 'Returns the purpose of the link. The link stays valid.',
        body: oneToken,
        answer: linkInfo,
        errors: ['permission_denied', 'not_found'],
      }),
    },
    async (request) => {
      const { link, accountName, email } = await joining.inspect(check(oneToken, request.body).token)
      return {
        kind: link.kind,
        account: accountName === undefined ? null : { name: accountName },
        role: link.role ?? null,
        email: email ?? null,
        expireTime: rfc3339(link.expiresAt),
      }
    },
  )

  app.post(
    `${CONSOLE}/links/accept`,
    {
      config: postOpen,
      schema: open({
        id: 'acceptLink',
        tag,
        summary: 'Use a one-time link',
        description:
          'A welcome link or an invitation creates a user from name, e-mail address and password. An existing user proves their password or is signed in already. A reset link sets the new password. Signs the user in.',
        body: acceptance,
        answer: me,
        errors: ['unauthenticated', 'permission_denied', 'not_found', 'conflict', 'rate_limited'],
      }),
    },
    async (request, reply) => {
      const { token, ...person } = check(acceptance, request.body)
      const visitor = await signIn.visitor(request.headers.cookie)
      const cookies = await joining.accept(token, person, visitor, originOf(request))
      return showNewVisitor(dependencies, reply, cookies, visitor)
    },
  )

  app.post(
    `${CONSOLE}/sign-up`,
    {
      config: postOpen,
      schema: open({
        id: 'signUp',
        tag,
        summary: 'Sign up',
        description:
          'Creates a user with a new account if the operator allows it; otherwise returns 404. The service is off in the account until its owner enables it.',
        body: newAccount,
        answer: me,
        errors: ['unauthenticated', 'permission_denied', 'not_found', 'rate_limited'],
      }),
    },
    async (request, reply) => {
      if (!dependencies.signUp)
        throw new ErrandError('not_found', 'This server does not allow sign-up. Ask for an invitation.')
      const { accountName, ...person } = check(newAccount, request.body)
      const cookies = await joining.signUp(person, accountName, originOf(request))
      return showNewVisitor(dependencies, reply, cookies, undefined)
    },
  )
}
