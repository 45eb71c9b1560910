/** The set-up of better-auth, which does passwords, sessions and OpenID Connect. Its own routes are not served. */
import { hkdfSync } from 'node:crypto'
import { newId } from '../domain/ids.ts'
import { PASSWORD_CHARS } from './password-rules.ts'
import type { Origin, SignInOptions } from './sign-in.ts'

const SESSION_S = 14 * 24 * 3600
const ADDRESS_HEADER = 'x-errand-address'

export const AUTH_PATH = '/console/auth'
export const OIDC = 'oidc'
export const COOKIE = 'errand_session'

export type SignInLibrary = Awaited<ReturnType<typeof openSignInLibrary>>

/** Takes about 250 ms, because the library is loaded first. With `oidc`, also asks the provider for its configuration. */
export async function openSignInLibrary({ db, secret, publicUrl, oidc, log }: SignInOptions) {
  const [{ betterAuth }, { genericOAuth }, { createSignInStore }] = await Promise.all([
    import('better-auth/minimal'),
    import('better-auth/plugins/generic-oauth'),
    import('./sign-in-store.ts'),
  ])
  const url = publicUrl()
  const https = url.startsWith('https:')
  const plugins = oidc
    ? [
        genericOAuth({
          config: [
            {
              providerId: OIDC,
              discoveryUrl: `${oidc.issuer}/.well-known/openid-configuration`,
              clientId: oidc.clientId,
              clientSecret: oidc.clientSecret,
              scopes: ['openid', 'email', 'profile'],
              requireIdTokenVerification: true,
            },
          ],
        }),
      ]
    : []
  return betterAuth({
    appName: 'Errand',
    baseURL: url,
    basePath: AUTH_PATH,
    secret: Buffer.from(hkdfSync('sha256', secret, '', 'errand console sessions', 32)).toString('hex'),
    database: createSignInStore(db),
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: PASSWORD_CHARS.min,
      maxPasswordLength: PASSWORD_CHARS.max,
    },
    session: { expiresIn: SESSION_S, disableSessionRefresh: true },
    account: { encryptOAuthTokens: true },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: { level: 'error', log: (level, message) => log.warn({ from: 'sign-in', level }, message) },
    advanced: {
      // The gate's own check is stricter (http/gate/session.ts).
      disableCSRFCheck: true,
      // The library would use another prefix than `__Host-`, which is stricter.
      useSecureCookies: false,
      cookiePrefix: 'errand',
      defaultCookieAttributes: { secure: https, httpOnly: true, sameSite: 'lax', path: '/' },
      cookies: { session_token: { name: https ? `__Host-${COOKIE}` : COOKIE } },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER] },
      database: { generateId: ({ model }) => newId(PREFIXES[model] ?? 'vrf') },
    },
    plugins,
  })
}

const PREFIXES: Readonly<Record<string, 'usr' | 'ses' | 'idn'>> = { user: 'usr', session: 'ses', account: 'idn' }

/** Headers for the library: only what it needs of the request. */
export function headersOf({ cookie, userAgent, address }: Origin): Headers {
  const headers = new Headers({ [ADDRESS_HEADER]: address })
  if (cookie !== undefined) headers.set('cookie', cookie)
  if (userAgent !== undefined) headers.set('user-agent', userAgent.slice(0, 256))
  return headers
}
