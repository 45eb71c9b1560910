/**
 * Credentials that a run signs in to other services with. The vault stores them; callers refer to them by id, and the API
 * never returns the secret. A request may also contain a secret itself.
 */

/** The secret itself. It is in memory while it is used, and sealed everywhere else. */
export type Secret =
  | { readonly type: 'bearer'; readonly token: string }
  | { readonly type: 'headers'; readonly headers: Readonly<Record<string, string>> }
  | { readonly type: 'basic'; readonly username: string; readonly password: string }
  | OAuth2Secret

/**
 * An OAuth 2 client. With `refreshToken`, that token renews the access token; without it, the client's own credentials do.
 * Without `tokenUrl`, the token endpoint is discovered from the server that is signed in to (RFC 9728, RFC 8414).
 */
export interface OAuth2Secret {
  readonly type: 'oauth2'
  readonly tokenUrl?: string
  readonly clientId?: string
  readonly clientSecret?: string
  /** PEM key used instead of a client secret, with its signing algorithm (RFC 7523). */
  readonly privateKey?: string
  readonly signingAlgorithm?: string
  readonly refreshToken?: string
  readonly accessToken?: string
  readonly scopes?: readonly string[]
  /** When `accessToken` expires, in milliseconds since 1970; undefined if unknown. */
  readonly expiresAt?: number
}

export const SECRET_TYPES = ['bearer', 'headers', 'basic', 'oauth2'] as const
export type SecretType = Secret['type']

/** The public fields of a credential. */
export interface Credential {
  readonly id: string
  readonly name?: string
  readonly type: SecretType
  /** Hosts that it may be sent to: `api.example.com`, `*.example.com`, `127.0.0.1:9000`. Undefined: anywhere. */
  readonly allowedHosts?: readonly string[]
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly lastUsedAt?: number
}

/**
 * True if a pattern matches the URL's host. A pattern without a port matches the scheme's default port; `*.` matches one or
 * more labels.
 */
export function hostAllowed(patterns: readonly string[] | undefined, url: URL): boolean {
  if (patterns === undefined) return true
  const port = url.port || (url.protocol === 'http:' ? '80' : '443')
  return patterns.some((pattern) => {
    const [, host = '', wanted] = /^(.*?)(?::(\d+))?$/.exec(pattern.toLowerCase()) ?? []
    if (port !== (wanted ?? (url.protocol === 'http:' ? '80' : '443'))) return false
    return host.startsWith('*.') ? url.hostname.endsWith(host.slice(1)) : url.hostname === host
  })
}

/** The header fields that carry the secret. Empty for an oauth2 secret without an access token. */
export function headersOf(secret: Secret): Readonly<Record<string, string>> {
  switch (secret.type) {
    case 'bearer':
      return { authorization: `Bearer ${secret.token}` }
    case 'headers':
      return secret.headers
    case 'basic': {
      const pair = Buffer.from(`${secret.username}:${secret.password}`).toString('base64')
      return { authorization: `Basic ${pair}` }
    }
    case 'oauth2':
      return secret.accessToken === undefined ? {} : { authorization: `Bearer ${secret.accessToken}` }
  }
}

/** All texts that must be redacted because of this secret, including the forms in which it is sent. */
export function confidential(secret: Secret): string[] {
  switch (secret.type) {
    case 'bearer':
      return [secret.token]
    case 'headers':
      return Object.values(secret.headers).flatMap((value) => [value, value.replace(/^\S+ +/, '')])
    case 'basic':
      return [secret.password, headersOf(secret).authorization!.slice('Basic '.length)]
    case 'oauth2': {
      const { clientSecret, privateKey, refreshToken, accessToken } = secret
      const texts = [clientSecret, privateKey, refreshToken, accessToken].filter((text) => text !== undefined)
      // Each line of a key is redacted, except the first and the last one, which all keys share.
      return [
        ...texts,
        ...(privateKey
          ?.split('\n')
          .map((line) => line.trimEnd())
          .filter((line) => /^[A-Za-z0-9+/=]{8,}$/.test(line)) ?? []),
      ]
    }
  }
}
