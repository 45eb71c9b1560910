/**
 * Sign-in to an MCP server. A static secret is sent as headers. An OAuth 2 credential is sent as its access token, which is
 * renewed when it is missing, about to expire or refused: with the refresh token, else with the client credentials.
 *
 * A server names its own token endpoint (RFC 9728, RFC 8414), so a hostile server could name one that collects secrets.
 * Therefore a secret is only sent to the configured `tokenUrl`, the server's own host, or the credential's `allowedHosts`.
 */
import {
  type AuthorizationServerMetadata,
  type AuthProvider,
  createPrivateKeyJwtAuth,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type FetchLike,
  fetchToken,
  type OAuthClientProvider,
  OAuthError,
  type OAuthTokens,
  refreshAuthorization,
} from '@modelcontextprotocol/client'
import { headersOf, hostAllowed, type OAuth2Secret, type Secret } from '../../domain/credential.ts'

/** A token that expires sooner than this is renewed before use. */
const EXPIRY_MARGIN_MS = 30_000

/** Access to the secret for one server in one run. */
export interface CredentialHandle {
  /** Reads the current secret. Other runs may have renewed a shared one. */
  read(): Promise<Secret>
  /** Stores a renewed secret. Returns the stored secret, which is another one if another run was first. */
  renew(secret: OAuth2Secret): Promise<Secret>
  readonly allowedHosts: readonly string[] | undefined
  /** Runs one renewal at a time among all runs that share the secret. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
}

/** The sign-in is not possible. The message contains no secrets. */
export class SignInRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SignInRefused'
  }
}

export interface SignIn {
  readonly headers: Readonly<Record<string, string>>
  readonly authProvider?: AuthProvider
  /** Set if there is no token yet. It is requested when the server asks for one. */
  readonly authorize?: OAuth2Secret
}

export async function signInWith(credential: CredentialHandle, serverUrl: URL, fetchFn: FetchLike): Promise<SignIn> {
  if (!hostAllowed(credential.allowedHosts, serverUrl)) {
    throw new SignInRefused(`The credential may not be sent to ${serverUrl.host}; see its allowedHosts.`)
  }
  const secret = await credential.read()
  if (secret.type !== 'oauth2') return { headers: headersOf(secret) }
  if (secret.accessToken === undefined && !isRenewable(secret)) return { headers: {}, authorize: secret }
  return { headers: {}, authProvider: createTokens(credential, secret, serverUrl, fetchFn) }
}

type Challenge = ReturnType<typeof extractWWWAuthenticateParams>

function createTokens(
  credential: CredentialHandle,
  first: OAuth2Secret,
  serverUrl: URL,
  fetchFn: FetchLike,
): AuthProvider {
  let current = first

  async function renew(challenge: Challenge | undefined): Promise<void> {
    const refused = current.accessToken
    await credential.exclusively(async () => {
      const shared = await credential.read()
      if (shared.type === 'oauth2') current = shared
      // Another run renewed it meanwhile, or a person replaced it.
      if (current.accessToken !== undefined && current.accessToken !== refused) return
      const kept = await credential.renew(await fetchNew(credential, current, serverUrl, challenge, fetchFn))
      if (kept.type === 'oauth2') current = kept
    })
  }

  return {
    async token() {
      const { accessToken, expiresAt = Number.POSITIVE_INFINITY } = current
      const usable = accessToken !== undefined && expiresAt - EXPIRY_MARGIN_MS > Date.now()
      // Without a tokenUrl, the server's 401 answer names the token endpoint.
      if (!usable && current.tokenUrl !== undefined && isRenewable(current)) await renew(undefined)
      return current.accessToken
    },
    async onUnauthorized({ response }) {
      if (!isRenewable(current)) throw new SignInRefused('The server refused the access token.')
      await renew(extractWWWAuthenticateParams(response))
    },
  }
}

function isRenewable({ refreshToken, clientId, clientSecret, privateKey }: OAuth2Secret): boolean {
  return refreshToken !== undefined || (clientId !== undefined && (clientSecret ?? privateKey) !== undefined)
}

async function fetchNew(
  credential: CredentialHandle,
  secret: OAuth2Secret,
  serverUrl: URL,
  challenge: Challenge | undefined,
  fetchFn: FetchLike,
): Promise<OAuth2Secret> {
  const from = await tokenServer(credential, secret, serverUrl, challenge, fetchFn)
  const scope = secret.scopes?.join(' ') ?? challenge?.scope ?? from.scopes
  let tokens: OAuthTokens
  try {
    tokens =
      secret.refreshToken === undefined
        ? await fetchToken(clientOf(secret), from.url, { ...from, scope, fetchFn })
        : await refreshAuthorization(from.url, {
            ...from,
            clientInformation: clientInformation(secret) as never,
            refreshToken: secret.refreshToken,
            addClientAuthentication: signedAuthentication(secret),
            scope: secret.scopes?.join(' '),
            fetchFn,
          })
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    throw new SignInRefused(`The token endpoint at ${from.endpoint.host} refused the request: ${error.code}.`)
  }
  return {
    ...secret,
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token ?? secret.refreshToken,
    expiresAt: tokens.expires_in === undefined ? undefined : Date.now() + tokens.expires_in * 1_000,
  }
}

interface TokenServer {
  readonly url: URL
  readonly endpoint: URL
  readonly metadata: AuthorizationServerMetadata | undefined
  readonly resource: string | undefined
  /** The scopes that the server supports, used if none are configured. */
  readonly scopes: string | undefined
}

async function tokenServer(
  credential: CredentialHandle,
  secret: OAuth2Secret,
  serverUrl: URL,
  challenge: Challenge | undefined,
  fetchFn: FetchLike,
): Promise<TokenServer> {
  if (secret.tokenUrl !== undefined) {
    const endpoint = new URL(secret.tokenUrl)
    const metadata = {
      issuer: endpoint.origin,
      authorization_endpoint: endpoint.href,
      token_endpoint: endpoint.href,
      response_types_supported: ['code'],
    }
    return { url: new URL(endpoint.origin), endpoint, metadata, resource: undefined, scopes: undefined }
  }
  const { resourceMetadataUrl } = challenge ?? {}
  const found = await discoverOAuthServerInfo(serverUrl, { resourceMetadataUrl, fetchFn })
  const url = new URL(found.authorizationServerUrl)
  const metadata = found.authorizationServerMetadata
  const endpoint = new URL(metadata?.token_endpoint ?? new URL('/token', url))
  checkReceiver(credential, serverUrl, endpoint)
  const { resource, scopes_supported: scopes } = found.resourceMetadata ?? {}
  if (resource !== undefined && !covers(resource, serverUrl)) {
    throw new SignInRefused('The server’s metadata says that its tokens are for another server.')
  }
  return { url, endpoint, metadata, resource, scopes: scopes?.join(' ') }
}

function checkReceiver({ allowedHosts }: CredentialHandle, serverUrl: URL, endpoint: URL): void {
  if (endpoint.hostname === serverUrl.hostname && endpoint.protocol === serverUrl.protocol) return
  if (allowedHosts !== undefined && hostAllowed(allowedHosts, endpoint)) return
  throw new SignInRefused(
    `The server names ${endpoint.host} as its token endpoint, which is not confirmed. Set tokenUrl, or add that host to the credential's allowedHosts.`,
  )
}

/** Whether the metadata's `resource` names this server, or a path above it (RFC 9728, 3.3). */
function covers(resource: string, serverUrl: URL): boolean {
  const named = URL.canParse(resource) ? new URL(resource) : undefined
  if (named?.origin !== serverUrl.origin) return false
  const folder = named.pathname.endsWith('/') ? named.pathname : `${named.pathname}/`
  return `${serverUrl.pathname}/`.startsWith(folder)
}

function clientInformation({ clientId, clientSecret }: OAuth2Secret) {
  return clientId === undefined ? undefined : { client_id: clientId, client_secret: clientSecret }
}

/** Client authentication by a signed JWT. */
function signedAuthentication({ clientId, privateKey, signingAlgorithm = 'ES256' }: OAuth2Secret) {
  if (clientId === undefined || privateKey === undefined) return undefined
  return createPrivateKeyJwtAuth({ issuer: clientId, subject: clientId, privateKey, alg: signingAlgorithm })
}

/** The library's provider interface for the client credentials grant. */
function clientOf(secret: OAuth2Secret): OAuthClientProvider {
  return {
    redirectUrl: undefined,
    clientMetadata: { redirect_uris: [], grant_types: ['client_credentials'] },
    clientInformation: () => clientInformation(secret),
    addClientAuthentication: signedAuthentication(secret),
    tokens: () => undefined,
    saveTokens() {},
    redirectToAuthorization() {},
    saveCodeVerifier() {},
    codeVerifier: () => '',
    prepareTokenRequest(scope) {
      return new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) })
    },
  }
}
