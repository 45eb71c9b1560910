/**
 * Credentials: what a run signs in with elsewhere. Kept in the vault, referred to by id, never shown again; and the ways
 * of signing in that a request may spell out itself.
 */

/** The secret itself. It stands in memory while it is used, sealed everywhere else. */
export type Secret =
  | { readonly type: 'bearer'; readonly token: string }
  | { readonly type: 'headers'; readonly headers: Readonly<Record<string, string>> }
  | { readonly type: 'basic'; readonly username: string; readonly password: string }
  | OAuth2Secret

/**
 * With `refreshToken` the access token is renewed by it; with none, by the client's own credentials. `tokenUrl` absent:
 * the server that is signed in to says where (RFC 9728, RFC 8414).
 */
export interface OAuth2Secret {
  readonly type: 'oauth2'
  readonly tokenUrl?: string
  readonly clientId?: string
  readonly clientSecret?: string
  /** Instead of a client secret: PEM, with the algorithm that it signs with (RFC 7523). */
  readonly privateKey?: string
  readonly signingAlgorithm?: string
  readonly refreshToken?: string
  readonly accessToken?: string
  readonly scopes?: readonly string[]
  /** Of `accessToken`, milliseconds since 1970; undefined where nobody said. */
  readonly expiresAt?: number
}

export const SECRET_TYPES = ['bearer', 'headers', 'basic', 'oauth2'] as const
export type SecretType = Secret['type']

/** What may be seen of a credential. */
export interface Credential {
  readonly id: string
  readonly name?: string
  readonly type: SecretType
  /** Where it may be sent: `api.example.com`, `*.example.com`, `127.0.0.1:9000`. Undefined: anywhere. */
  readonly allowedHosts?: readonly string[]
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly lastUsedAt?: number
}

/**
 * Whether `url` is one of the hosts. A pattern without a port means the scheme's own; `*.` stands for one or more labels,
 * never for none.
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

/** The header fields that a secret is sent as; none for an oauth2 secret without an access token. */
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

/** Every text that must never be shown because of this secret, as it is sent too. */
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
      // A key's lines are told apart too, but not the first and the last one, which all keys have.
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
