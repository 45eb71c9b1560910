/** Signing in and out, one-time links, and what who is signed in sees of themselves. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { checkPassword } from '../../accounts/joining.ts'
import type { Cookies, Visitor } from '../../accounts/sign-in.ts'
import { ErrandError } from '../../domain/errors.ts'
import { originOf } from '../gate/session.ts'
import { forSession, open } from '../openapi/route-docs.ts'
import { check, wrongField } from '../request/fields.ts'
import { rfc3339 } from '../wire/time.ts'
import { CONSOLE, type ConsoleDependencies } from './dependencies.ts'
import { email, linkInfo, me, name, password, session, token } from './schemas.ts'

const AUTH = '/console/auth'
const tag = 'Console'
const done = z.object({})

const credentials = z.object({ email, password })
const oneToken = z.object({ token })
const acceptance = z.object({ token, name: name.optional(), email: email.optional(), password: password.optional() })
const newAccount = z.object({ name, email, password, accountName: name.optional() })
const oidcPaths = z.object({ callbackURL: z.string().optional(), errorCallbackURL: z.string().optional() })
const options = z.object({
  signUp: z.boolean().meta({ description: 'Whether anybody may make an account of their own.' }),
  oidc: z
    .object({ name: z.string() })
    .nullable()
    .meta({ description: 'The provider to sign in with, if there is one.' }),
  owned: z.boolean().meta({ description: 'False until somebody used the link of the first start.' }),
})

export function sessionRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { signIn, joining, accounts } = dependencies
  const postOpen = { console: 'open', json: true } as const

  app.get(
    `${CONSOLE}/sign-in-options`,
    {
      config: { console: 'open' },
      schema: open({
        id: 'getSignInOptions',
        tag,
        summary: 'How to sign in',
        description: 'What the page of the sign-in offers.',
        answer: options,
      }),
    },
    async () => ({ signUp: dependencies.signUp, oidc: signIn.oidc ?? null, owned: await accounts.members.anyOwner() }),
  )

  app.post(
    `${AUTH}/sign-in/email`,
    {
      config: postOpen,
      schema: open({
        id: 'signIn',
        tag,
        summary: 'Sign in',
        description:
          'By e-mail address and password; sets the session’s cookie. Tries are limited, by address and by account, on all nodes together.',
        body: credentials,
        answer: done,
        errors: ['unauthenticated', 'permission_denied', 'rate_limited'],
      }),
    },
    async (request, reply) => {
      const asked = check(credentials, request.body)
      setCookies(reply, await signIn.withPassword(asked.email, asked.password, originOf(request)))
      return {}
    },
  )

  app.post(
    `${AUTH}/sign-out`,
    {
      config: { console: 'open' },
      schema: open({
        id: 'signOut',
        tag,
        summary: 'Sign out',
        description: 'Ends the session of the cookie.',
        answer: done,
        errors: ['permission_denied'],
      }),
    },
    async (request, reply) => {
      setCookies(reply, await signIn.end(originOf(request)))
      return {}
    },
  )

  app.post(
    `${AUTH}/sign-in/oidc`,
    {
      config: postOpen,
      schema: open({
        id: 'signInWithProvider',
        tag,
        summary: 'Sign in with a provider',
        description:
          'Where to send the browser: the OpenID Connect provider that the operator configured. It comes back to `callbackURL`, or to `errorCallbackURL` with `?error=`; both are paths below /console.',
        body: oidcPaths,
        answer: z.object({ url: z.string() }),
        errors: ['permission_denied', 'not_found', 'unavailable'],
      }),
    },
    async (request, reply) => {
      const asked = check(oidcPaths, request.body)
      const paths = {
        callbackURL: consolePath(asked, 'callbackURL', '/console'),
        errorCallbackURL: consolePath(asked, 'errorCallbackURL', '/console/sign-in'),
      }
      const { url, cookies } = await signIn.beginOidc(paths, originOf(request))
      setCookies(reply, cookies)
      return { url }
    },
  )

  app.get(
    `${AUTH}/callback/oidc`,
    // The provider's to call, by way of the browser: no part of the documented API.
    { config: { console: 'open' }, schema: { hide: true } },
    async (request, reply) => {
      const query = request.url.includes('?') ? request.url.slice(request.url.indexOf('?')) : ''
      const { location, cookies } = await signIn.finishOidc(query, originOf(request))
      setCookies(reply, cookies)
      return reply.redirect(location, 302)
    },
  )

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
      return aboutNewcomer(dependencies, reply, cookies, visitor)
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
      return aboutNewcomer(dependencies, reply, cookies, undefined)
    },
  )

  ownRoutes(app, dependencies)
}

const passwordChange = z.object({ currentPassword: password, newPassword: password })
const sessionParams = z.object({ sessionId: z.string() })

/** What people see and change of themselves. */
function ownRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { signIn } = dependencies
  const config = { console: 'session' } as const

  app.get(
    `${CONSOLE}/me`,
    {
      config,
      schema: forSession({
        id: 'getMe',
        tag,
        summary: 'Who is signed in',
        description: 'With their accounts, roles and projects.',
        answer: me,
      }),
    },
    async (request) => aboutVisitor(dependencies, request.visitor),
  )

  app.post(
    `${CONSOLE}/me/password`,
    {
      config: { ...config, json: true },
      schema: forSession({
        id: 'changePassword',
        tag,
        summary: 'Change the password',
        description: 'All other sessions end.',
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
        description: 'Where you are signed in, newest first.',
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
        description: 'One of your own, at once, on every node.',
        params: sessionParams,
        answer: done,
        errors: ['not_found'],
      }),
    },
    async ({ visitor, params }) => {
      const ended = await signIn.endSessions(visitor.userId, { only: params.sessionId })
      if (ended === 0) throw new ErrandError('not_found', `You have no session ${JSON.stringify(params.sessionId)}.`)
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
        description: 'All of your own but this one.',
        answer: z.object({ revoked: z.int() }),
      }),
    },
    async ({ visitor }) => ({ revoked: await signIn.endSessions(visitor.userId, { but: visitor.sessionId }) }),
  )
}

async function aboutVisitor({ accounts }: ConsoleDependencies, { userId, name, email, createdAt, sessionId }: Visitor) {
  const memberships = await accounts.members.ofUser(userId)
  return {
    user: { id: userId, name, email, createTime: rfc3339(createdAt) },
    sessionId,
    accounts: await Promise.all(
      memberships.map(async ({ accountId, accountName, role, enabled }) => {
        const projects = await accounts.projects.list(accountId)
        return { id: accountId, name: accountName, role, enabled, projects: projects.map(showProject) }
      }),
    ),
  }
}

/** With the cookies of the session that began just now, or for who was there already. */
async function aboutNewcomer(
  dependencies: ConsoleDependencies,
  reply: FastifyReply,
  cookies: Cookies,
  visitor: Visitor | undefined,
) {
  setCookies(reply, cookies)
  const newcomer = await dependencies.signIn.visitor(cookies.map((line) => line.split(';')[0]).join('; '))
  return aboutVisitor(dependencies, (newcomer ?? visitor)!)
}

export function showProject({ id, name, createdAt }: { id: string; name: string; createdAt: number }) {
  return { id, name, createTime: rfc3339(createdAt) }
}

function setCookies(reply: FastifyReply, cookies: Cookies): void {
  if (cookies.length > 0) reply.header('Set-Cookie', [...cookies])
}

/** Nobody is sent to another site from here. */
function consolePath(asked: z.infer<typeof oidcPaths>, field: keyof typeof asked, usual: string): string {
  const path = asked[field] ?? usual
  if (/^\/console(?:[/?][\w\-./?=&%]*)?$/.test(path) && !path.includes('..')) return path
  throw wrongField(field, 'must be a path below /console')
}
