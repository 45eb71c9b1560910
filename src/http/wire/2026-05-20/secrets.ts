/**
 * Secrets in requests: of a credential, or of an MCP server's `authentication`. The fields are next to `type`, and each type
 * takes some of them. Error messages never contain what was sent.
 */
import { z } from 'zod'
import { SECRET_TYPES, type Secret, type SecretType } from '../../../domain/credential.ts'
import { wrongField } from '../../request/fields.ts'

const MAX_SECRET_CHARS = 16_384
const MAX_URL_CHARS = 4096
const MAX_HEADERS = 20
const MAX_SCOPES = 50

/** Headers that HTTP or MCP itself needs, and headers that a proxy could take as another caller's identity. */
const RESERVED = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'transfer-encoding', 'upgrade', 'te', 'trailer'],
  ...['expect', 'keep-alive', 'accept', 'accept-encoding', 'mcp-session-id', 'mcp-protocol-version', 'last-event-id'],
])

const secretText = () =>
  z
    .string()
    .min(1)
    .max(MAX_SECRET_CHARS)
    .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'must not contain control characters' })
    .refine((text) => text.isWellFormed(), { error: 'is not Unicode (a lone surrogate)' })

/** Text that is put into a header unchanged. */
const headerText = () => secretText().regex(/^[\x20-\x7e]*$/, { error: 'may only have visible ASCII characters' })

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, { error: 'has a name that is not a valid HTTP header name' })
  .refine((name) => !RESERVED.has(name.toLowerCase()), { error: 'has a name that the server sets itself' })

export const secretFields = {
  token: headerText()
    .regex(/^\S*$/, { error: 'must not contain spaces' })
    .nullish()
    .meta({ description: 'For `bearer`: the token. Write-only.' }),
  headers: z
    .record(headerName, headerText())
    .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, {
      error: `may have at most ${MAX_HEADERS} entries`,
    })
    .nullish()
    .meta({ description: 'For `headers`: header names and values. Write-only.' }),
  username: secretText()
    .regex(/^[^:]*$/, { error: 'must not contain a colon' })
    .nullish()
    .meta({ description: 'For `basic`.' }),
  password: secretText().nullish().meta({ description: 'For `basic`. Write-only.' }),
  tokenUrl: z.string().max(MAX_URL_CHARS).nullish().meta({
    description: 'For `oauth2`: the token endpoint. Absent: discovered from the server that the credential is for.',
  }),
  clientId: secretText().nullish().meta({ description: 'For `oauth2`.' }),
  clientSecret: secretText().nullish().meta({ description: 'For `oauth2`. Write-only.' }),
  privateKey: z
    .string()
    .max(MAX_SECRET_CHARS)
    .regex(/^-----BEGIN [A-Z ]*PRIVATE KEY-----\s[A-Za-z0-9+/=\s]+-----END [A-Z ]*PRIVATE KEY-----\s*$/, {
      error: 'must be a private key in PEM',
    })
    .nullish()
    .meta({
      description:
        'For `oauth2`, instead of `clientSecret`: the key with which the client signs a JWT. PEM (PKCS #8). Write-only.',
    }),
  signingAlgorithm: z
    .enum(['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'])
    .nullish()
    .meta({ description: 'Algorithm for `privateKey`. Default `ES256`.' }),
  refreshToken: secretText().nullish().meta({
    description: 'For `oauth2`: renews access tokens, also during a run. Write-only.',
  }),
  accessToken: headerText()
    .nullish()
    .meta({ description: 'For `oauth2`: an access token that you already have. Write-only.' }),
  scopes: z
    .array(headerText().max(512))
    .max(MAX_SCOPES)
    .nullish()
    .meta({ description: 'For `oauth2`: scopes to request.' }),
} as const

const FIELDS: Readonly<Record<SecretType, readonly (keyof typeof secretFields)[]>> = {
  bearer: ['token'],
  headers: ['headers'],
  basic: ['username', 'password'],
  oauth2: [
    ...(['tokenUrl', 'clientId', 'clientSecret', 'privateKey', 'signingAlgorithm'] as const),
    ...(['refreshToken', 'accessToken', 'scopes'] as const),
  ],
}

export const secretType = z.enum(SECRET_TYPES)

/** `authentication` of an MCP server: a bearer token, or an object of one of the types. */
export const authentication = z.union(
  [
    secretFields.token.unwrap().unwrap(),
    z.object({ type: z.literal('none') }),
    z.object({ type: z.literal('credential'), credentialId: z.string().min(1).max(128) }),
    z.object({ type: secretType, ...secretFields }),
  ],
  {
    error:
      'must be a bearer token, or an object of type none, bearer (token), headers (headers), basic (username, password), oauth2, or credential (credentialId)',
  },
)

export type SentAuthentication = z.output<typeof authentication>

type SecretFields = { readonly [K in keyof typeof secretFields]?: z.output<(typeof secretFields)[K]> }

/**
 * Builds a secret from the fields of a request. Absent fields come from `stored`, if it has the same type. An oauth2 secret
 * may be empty: a run then asks the server for a token. Throws ErrandError `invalid_request`; `param` is below `at`.
 */
export function toSecret(type: SecretType, fields: SecretFields, at = '', stored?: Secret): Secret {
  const own = FIELDS[type]
  for (const name of Object.keys(secretFields) as (keyof typeof secretFields)[]) {
    if (fields[name] === undefined || fields[name] === null || own.includes(name)) continue
    throw wrongField(at + name, `is not a field of type ${JSON.stringify(type)}`)
  }
  const before: Readonly<Record<string, unknown>> = stored?.type === type ? { ...stored } : {}
  const merged: Record<string, unknown> = { type }
  for (const name of own) {
    const value = fields[name] === undefined ? before[name] : fields[name]
    if (value !== undefined && value !== null) merged[name] = value
    else if (type !== 'oauth2') throw wrongField(at + name, `is required for type ${JSON.stringify(type)}`)
  }
  if (typeof merged.tokenUrl === 'string') checkTokenUrl(merged.tokenUrl, `${at}tokenUrl`)
  return merged as unknown as Secret
}

/** Like `toSecret`, for a stored credential: an oauth2 secret must be able to get a token without a run. */
export function toStoredSecret(type: SecretType, fields: SecretFields, stored?: Secret): Secret {
  const secret = toSecret(type, fields, '', stored)
  if (secret.type !== 'oauth2') return secret
  const { clientId, clientSecret, privateKey, refreshToken, accessToken } = secret
  if (refreshToken !== undefined || accessToken !== undefined) return secret
  if (clientId !== undefined && (clientSecret ?? privateKey) !== undefined) return secret
  throw wrongField(
    'refreshToken',
    'is required, unless you send an `accessToken`, or a `clientId` with its `clientSecret` or `privateKey`',
  )
}

function checkTokenUrl(text: string, param: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') throw wrongField(param, 'must be an https:// URL')
  if (url.username !== '' || url.password !== '') throw wrongField(param, 'must not contain a user name or password')
}
