/**
 * The interface for signing in to the console: passwords, OpenID Connect and sessions. create-sign-in.ts implements it.
 *
 * A session is a row in the database: deleting the row ends it on every node at once. Scripts and other sites cannot use its
 * cookie. Trying to sign in does not reveal which e-mail addresses have an account.
 */
import type { Database } from '../store/port.ts'

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
