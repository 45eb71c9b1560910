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

/** Information about the sender of a request. */
export interface Origin {
  readonly cookie: string | undefined
  readonly userAgent: string | undefined
  /** The IP address. */
  readonly address: string
  /** Key for counting attempts: the network that contains the address. */
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
  /** Label of the sign-in button. */
  readonly name: string
}

export interface SignIn {
  /** The provider's name. Undefined if none is configured. */
  readonly oidc: { readonly name: string } | undefined
  /** The user of the cookie's session. Undefined without a valid session. */
  visitor(cookie: string | undefined): Promise<Visitor | undefined>
  /** Begins a session. Throws ErrandError `unauthenticated`, `rate_limited`. */
  withPassword(email: string, password: string, origin: Origin): Promise<Cookies>
  /** Ends the cookie's session. */
  end(origin: Origin): Promise<Cookies>
  /** Returns the URL to send the browser to. Throws ErrandError `not_found`, `unavailable`. */
  beginOidc(paths: OidcPaths, origin: Origin): Promise<{ readonly url: string; readonly cookies: Cookies }>
  /** Finishes signing in with the query that the provider sent the browser back with. */
  finishOidc(query: string, origin: Origin): Promise<{ readonly location: string; readonly cookies: Cookies }>
  /** Returns the new user's id, or undefined if the e-mail address has a user. */
  createUser(user: {
    readonly name: string
    readonly email: string
    readonly password: string
  }): Promise<string | undefined>
  /** Ends all sessions of the user except `keep`. */
  setPassword(userId: string, password: string, keep?: string): Promise<void>
  /** Checks the user's password. Counts as a sign-in attempt. Throws ErrandError `rate_limited`. */
  isPassword(email: string, password: string, origin: Origin): Promise<boolean>
  sessions(userId: string): Promise<readonly SessionInfo[]>
  /** Ends one session, or all but one. Returns how many ended. */
  endSessions(userId: string, which: { readonly only: string } | { readonly but?: string }): Promise<number>
}

export interface OidcPaths {
  readonly callbackURL: string
  readonly errorCallbackURL: string
}

export interface SignInOptions {
  readonly db: Database
  /** The server's secret. */
  readonly secret: string
  /** The URL of this server for browsers. Called at the first sign-in. */
  readonly publicUrl: () => string
  readonly oidc?: OidcOptions
  readonly log: { warn(fields: object, message: string): void }
  /** Not awaited: the response time must not reveal whether the user exists. */
  readonly onFailure: (email: string) => Promise<void>
  readonly now?: () => number
}
