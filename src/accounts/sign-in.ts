/**
 * Who sits before the console. Passwords, sessions and OpenID Connect are the work of better-auth; here stands how it is
 * set up, and what of it there is: the rest of its API is not reachable.
 *
 * A session lies in the database and ends with its row, on every node at once. Its cookie is of no use to scripts or other
 * sites. Nobody learns by trying which e-mail addresses have an account.
 */
import { hkdfSync } from 'node:crypto'
import { ErrandError } from '../domain/errors.ts'
import { newId } from '../domain/ids.ts'
import { assertMade, type Database } from '../store/port.ts'
import { createAttempts } from './attempts.ts'
import { PASSWORD_CHARS } from './password-rules.ts'

const SESSION_S = 14 * 24 * 3600
/** In a quarter of an hour: failures for an account, all tries from an address, which may be a whole office's. */
const TRIES = { ofAccount: 10, ofAddress: 100 }
/** `updated_at` of a session is written at most so often: it is for people. */
const LAST_USED_MS = 60_000
const ADDRESS_HEADER = 'x-errand-address'

export interface Visitor {
  readonly sessionId: string
  readonly userId: string
  readonly name: string
  readonly email: string
  readonly createdAt: number
}

/** What a request shows of who sent it. */
export interface Origin {
  readonly cookie: string | undefined
  readonly userAgent: string | undefined
  /** The IP address. */
  readonly address: string
  /** Under what its tries are counted: addresses that one visitor may have are one. */
  readonly network: string
}

/** `Set-Cookie` lines. */
export type Cookies = readonly string[]

export interface SessionInfo {
  readonly id: string
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly expiresAt: number
  readonly ipAddress: string | undefined
  readonly userAgent: string | undefined
}

export interface OidcOptions {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string
  /** What the button says. */
  readonly name: string
}

export interface SignIn {
  /** How the provider is called; undefined where none is configured. */
  readonly oidc: { readonly name: string } | undefined
  /** Whose session the cookie is; undefined for none, a forged, an ended one. */
  visitor(cookie: string | undefined): Promise<Visitor | undefined>
  /** Begins a session. Throws ErrandError `unauthenticated`, `rate_limited`. */
  withPassword(email: string, password: string, origin: Origin): Promise<Cookies>
  /** Ends the cookie's session. */
  end(origin: Origin): Promise<Cookies>
  /** Where to send the browser. Paths are of this server. Throws ErrandError `not_found`, `unavailable`. */
  beginOidc(paths: OidcPaths, origin: Origin): Promise<{ readonly url: string; readonly cookies: Cookies }>
  /** The provider sent the browser back with this query. */
  finishOidc(query: string, origin: Origin): Promise<{ readonly location: string; readonly cookies: Cookies }>
  /** The new user's id; undefined where the e-mail address has an account. */
  createUser(user: {
    readonly name: string
    readonly email: string
    readonly password: string
  }): Promise<string | undefined>
  /** Ends all sessions of the user but the one to keep. */
  setPassword(userId: string, password: string, keep?: string): Promise<void>
  /** Whether it is the user's. Counts as an attempt to sign in. Throws ErrandError `rate_limited`. */
  isPassword(email: string, password: string, origin: Origin): Promise<boolean>
  sessions(userId: string): Promise<readonly SessionInfo[]>
  /** How many ended: that one alone, or all but that one. */
  endSessions(userId: string, which: { readonly only: string } | { readonly but?: string }): Promise<number>
}

export interface OidcPaths {
  readonly callbackURL: string
  readonly errorCallbackURL: string
}

export interface SignInOptions {
  readonly db: Database
  /** The server's. */
  readonly secret: string
  /** How browsers reach this server; asked when the first one comes. */
  readonly publicUrl: () => string
  readonly oidc?: OidcOptions
  readonly log: { warn(fields: object, message: string): void }
  /** Nobody waits for it: how long an answer takes must not show whether there is such a user. */
  readonly onFailure: (email: string) => Promise<void>
  readonly now?: () => number
}

export function createSignIn(options: SignInOptions): SignIn {
  const { db, now = Date.now } = options
  const attempts = createAttempts(db, now)
  let opened: ReturnType<typeof open> | undefined
  // The library takes a quarter of a second to load: a server nobody signs in to never does.
  const library = () => {
    opened ??= open({ ...options, oidc: undefined })
    return opened
  }
  // It asks the provider how it works as it is set up. One of its own, so that passwords never wait for a provider.
  let openedWithOidc: ReturnType<typeof open> | undefined
  const libraryWithOidc = () => {
    openedWithOidc ??= open(options)
    return openedWithOidc
  }

  const failed = (email: string) => void options.onFailure(email).catch(() => {})

  async function admit(email: string, network: string): Promise<() => Promise<void>> {
    const account = `account ${email.toLowerCase()}`
    const limits = [
      [`address ${network}`, TRIES.ofAddress],
      [account, TRIES.ofAccount],
    ] as const
    for (const [who, limit] of limits) {
      const waitS = await attempts.begin(who, limit)
      if (waitS === undefined) continue
      failed(email)
      throw new ErrandError('rate_limited', `Too many attempts to sign in. Try again in ${waitS} s.`, {
        retryAfterS: waitS,
      })
    }
    return () => attempts.forget(account)
  }

  /** The answer where the password is right. */
  async function tryPassword(email: string, password: string, origin: Origin): Promise<Response | undefined> {
    const { api } = await library()
    const forget = await admit(email, origin.network)
    const answer = await api.signInEmail({ body: { email, password }, headers: headersOf(origin), asResponse: true })
    if (!answer.ok) {
      failed(email)
      return undefined
    }
    await forget()
    return answer
  }

  function endWhere(userId: string, which: { readonly only?: string; readonly but?: string }) {
    let query = db.query.deleteFrom('sessions').where('user_id', '=', userId)
    if (which.only !== undefined) query = query.where('id', '=', which.only)
    if (which.but !== undefined) query = query.where('id', '!=', which.but)
    return query.returning('id').compile()
  }

  return {
    oidc: options.oidc && { name: options.oidc.name },

    async visitor(cookie) {
      if (!cookie?.includes(COOKIE)) return undefined
      const { api } = await library()
      const found = await api.getSession({ headers: new Headers({ cookie }) })
      if (!found) return undefined
      const { session, user } = found
      const { updatedAt } = session
      if (now() - updatedAt.getTime() > LAST_USED_MS) {
        const query = db.query.updateTable('sessions').set({ updated_at: now() }).where('id', '=', session.id).compile()
        // Only a hint for people.
        db.write([{ query }]).catch(() => {})
      }
      return {
        sessionId: session.id,
        userId: user.id,
        name: user.name,
        email: user.email,
        createdAt: user.createdAt.getTime(),
      }
    },

    async withPassword(email, password, origin) {
      const answer = await tryPassword(email, password, origin)
      if (!answer) throw new ErrandError('unauthenticated', 'The e-mail address or the password is wrong.')
      // Whoever planted a session in this browser before has nothing of it.
      if (origin.cookie !== undefined) await this.end(origin)
      return answer.headers.getSetCookie()
    },

    async end(origin) {
      const { api } = await library()
      return (await api.signOut({ headers: headersOf(origin), asResponse: true })).headers.getSetCookie()
    },

    async beginOidc(paths, origin) {
      if (!options.oidc) throw new ErrandError('not_found', 'No provider to sign in with is configured here.')
      const { api } = await libraryWithOidc()
      const answer = await api.signInSocial({
        body: { provider: OIDC, disableRedirect: true, ...paths },
        headers: headersOf(origin),
        asResponse: true,
      })
      const { url } = (await answer.json()) as { url?: string }
      if (answer.ok && url) return { url, cookies: answer.headers.getSetCookie() }
      // It asked the provider how it works, once, and got no answer; the next try asks again.
      openedWithOidc = undefined
      throw new ErrandError('unavailable', `${options.oidc.name} does not answer. Try again later.`)
    },

    async finishOidc(query, origin) {
      const { handler } = await libraryWithOidc()
      const url = `${options.publicUrl()}${AUTH_PATH}/callback/${OIDC}${query}`
      const answer = await handler(new Request(url, { headers: headersOf(origin) }))
      return { location: answer.headers.get('location') ?? '/console', cookies: answer.headers.getSetCookie() }
    },

    async createUser({ name, email, password }) {
      const { internalAdapter, password: hasher } = await (await library()).$context
      const hash = await hasher.hash(password)
      const taken = () =>
        db.query.selectFrom('users').select('id').where('email', '=', email.toLowerCase()).executeTakeFirst()
      if (await taken()) return undefined
      const user = await internalAdapter.createUser({ name, email, emailVerified: false }, { method: 'email-password' })
      await internalAdapter.createAccount({
        userId: user.id,
        providerId: 'credential',
        accountId: user.id,
        password: hash,
      })
      return user.id
    },

    async setPassword(userId, password, keep) {
      const { internalAdapter, password: hasher } = await (await library()).$context
      const hash = await hasher.hash(password)
      const own = await db.query
        .selectFrom('identities')
        .select('id')
        .where('user_id', '=', userId)
        .where('provider_id', '=', 'credential')
        .executeTakeFirst()
      if (own) await internalAdapter.updatePassword(userId, hash)
      else await internalAdapter.createAccount({ userId, providerId: 'credential', accountId: userId, password: hash })
      await db.write([{ query: endWhere(userId, { but: keep }) }])
    },

    async isPassword(email, password, origin) {
      const answer = await tryPassword(email, password, { ...origin, cookie: undefined })
      if (!answer) return false
      // It was asked, not signed in with.
      await this.end({
        ...origin,
        cookie: answer.headers
          .getSetCookie()
          .map((line) => line.split(';')[0])
          .join('; '),
      })
      return true
    },

    async sessions(userId) {
      const rows = await db.query
        .selectFrom('sessions')
        .selectAll()
        .where('user_id', '=', userId)
        .where('expires_at', '>', now())
        .orderBy('id', 'desc')
        .execute()
      return rows.map((row) => ({
        id: row.id,
        createdAt: Number(row.created_at),
        lastUsedAt: Number(row.updated_at),
        expiresAt: Number(row.expires_at),
        ipAddress: row.ip_address || undefined,
        userAgent: row.user_agent || undefined,
      }))
    },

    async endSessions(userId, which) {
      const result = await db.write([{ query: endWhere(userId, which) }])
      assertMade(result)
      return result.rows[0]!.length
    },
  }
}

const AUTH_PATH = '/console/auth'
const OIDC = 'oidc'
const COOKIE = 'errand_session'

async function open({ db, secret, publicUrl, oidc, log }: SignInOptions) {
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
      // What the gate checks (http/gate/gate.ts) goes further.
      disableCSRFCheck: true,
      // The library's own prefix is not the stricter `__Host-`.
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

function headersOf({ cookie, userAgent, address }: Origin): Headers {
  const headers = new Headers({ [ADDRESS_HEADER]: address })
  if (cookie !== undefined) headers.set('cookie', cookie)
  if (userAgent !== undefined) headers.set('user-agent', userAgent.slice(0, 256))
  return headers
}
