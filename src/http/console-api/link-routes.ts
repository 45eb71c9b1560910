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
        summary: 'What a one-time link is for',
        description: 'Does not use it up.',
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
          'A welcome or an invitation makes a user of name, e-mail address and password, or takes the one there is by its password, or who is signed in; a reset takes the new password. Signs in.',
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
          'A user with an account of their own, where the operator allows it (404 otherwise). The service is off in it until its owner switches it on.',
        body: newAccount,
        answer: me,
        errors: ['unauthenticated', 'permission_denied', 'not_found', 'rate_limited'],
      }),
    },
    async (request, reply) => {
      if (!dependencies.signUp) throw new ErrandError('not_found', 'Nobody can sign up here; ask for an invitation.')
      const { accountName, ...person } = check(newAccount, request.body)
      const cookies = await joining.signUp(person, accountName, originOf(request))
      return showNewVisitor(dependencies, reply, cookies, undefined)
    },
  )
}
