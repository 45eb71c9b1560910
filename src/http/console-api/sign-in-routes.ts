/** Sign-in and sign-out: with a password, or with an OpenID Connect provider. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { originOf } from '../gate/session.ts'
import { open } from '../openapi/route-docs.ts'
import { check, wrongField } from '../request/fields.ts'
import { CONSOLE, type ConsoleDependencies } from './dependencies.ts'
import { email, password } from './schemas.ts'
import { setCookies } from './visitors.ts'

const AUTH = '/console/auth'
const tag = 'Console'
const done = z.object({})

const credentials = z.object({ email, password })
const oidcPaths = z.object({ callbackURL: z.string().optional(), errorCallbackURL: z.string().optional() })
const options = z.object({
  signUp: z.boolean().meta({ description: 'Whether anyone may create an account.' }),
  oidc: z
    .object({ name: z.string() })
    .nullable()
    .meta({ description: 'OpenID Connect provider for sign-in, if one is configured.' }),
  owned: z
    .boolean()
    .meta({ description: 'Whether the server has an owner. False until the link of the first start is used.' }),
})

export function signInRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { signIn, accounts } = dependencies
  const postOpen = { console: 'open', json: true } as const

  app.get(
    `${CONSOLE}/sign-in-options`,
    {
      config: { console: 'open' },
      schema: open({
        id: 'getSignInOptions',
        tag,
        summary: 'Read the sign-in options',
        description: 'Returns the options of the sign-in page.',
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
          'Signs in with e-mail address and password, and sets the session’s cookie. Attempts are limited by IP address and by account, over all nodes.',
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
        description: 'Ends the session that the cookie names.',
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
          'Returns the address of the configured OpenID Connect provider, to which the browser must go. The provider sends it back to `callbackURL`, or to `errorCallbackURL` with `?error=`. Both are paths below /console.',
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
    // The provider redirects the browser to this path. It is not part of the documented API.
    { config: { console: 'open' }, schema: { hide: true } },
    async (request, reply) => {
      const query = request.url.includes('?') ? request.url.slice(request.url.indexOf('?')) : ''
      const { location, cookies } = await signIn.finishOidc(query, originOf(request))
      setCookies(reply, cookies)
      return reply.redirect(location, 302)
    },
  )
}

/**
 * Returns the requested path, or the default. Refuses everything outside the console, so that sign-in never redirects
 * to another site.
 */
function consolePath(asked: z.infer<typeof oidcPaths>, field: keyof typeof asked, usual: string): string {
  const path = asked[field] ?? usual
  if (/^\/console(?:[/?][\w\-./?=&%]*)?$/.test(path) && !path.includes('..')) return path
  throw wrongField(field, 'must be a path below /console')
}
