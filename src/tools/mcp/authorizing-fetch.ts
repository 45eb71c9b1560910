/**
 * OAuth authorization for a credential without a token. Errand registers itself as a client, unless the credential has a
 * `clientId` (which may be the address of client metadata), and requests an authorization code with PKCE. No person is
 * present during a run, so this succeeds only if the authorization server grants the request by itself, as many do inside
 * companies. Otherwise a person must sign in elsewhere and store the refresh token as a credential.
 *
 * No existing secret is sent: everything that the addresses named by the server receive was made for them.
 */
import { randomBytes } from 'node:crypto'
import {
  auth,
  computeScopeUnion,
  extractWWWAuthenticateParams,
  type FetchLike,
  IssuerMismatchError,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import type { OAuth2Secret } from '../../domain/credential.ts'
import { SignInRefused } from './sign-in.ts'

/** Nothing listens here: the code is read from the redirect, which is not followed. */
const REDIRECT_URL = 'http://127.0.0.1/callback'
const MAX_REDIRECTS = 5
/** Bounds the attempts with a server that refuses every token. */
const MAX_TRIES = 3

/** A fetch that requests authorization after a 401, and more scopes after a 403 for insufficient scope. */
export function authorizingFetch(
  secret: OAuth2Secret,
  serverUrl: URL,
  fetchFn: FetchLike,
  signInFetch: FetchLike,
  conceal: (secrets: readonly string[]) => void,
): FetchLike {
  const client = createClient(secret, signInFetch, conceal)
  let authorizing: Promise<void> | undefined
  let scopes: string | undefined

  /** The first MCP revision allows a server to name any issuer for its own origin. For other origins the issuer must match. */
  async function authorizeOnce(options: Parameters<typeof auth>[1]): Promise<string> {
    try {
      return await auth(client.provider, options)
    } catch (error) {
      const own =
        error instanceof IssuerMismatchError && error.kind === 'metadata' && isOfOrigin(error.received, serverUrl)
      if (!own) throw error
      return auth(client.provider, { ...options, skipIssuerMetadataValidation: true })
    }
  }

  async function authorize(response: Response): Promise<void> {
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
    scopes = computeScopeUnion(scopes, scope)
    const options = { serverUrl, resourceMetadataUrl, scope: scopes, fetchFn: signInFetch }
    const forceReauthorization = response.status === 403
    // The server may have moved to another authorization server, which does not know this client.
    client.rediscover()
    if ((await authorizeOnce({ ...options, forceReauthorization })) === 'AUTHORIZED') return
    const { code, iss } = client.takeCode()
    await authorizeOnce({ ...options, authorizationCode: code, iss })
  }

  return async (url, init) => {
    for (let tries = 1; ; tries++) {
      const headers = new Headers(init?.headers)
      const token = client.token()
      if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
      const response = await fetchFn(url, { ...init, headers })
      if (tries === MAX_TRIES || !needsAuthorization(response)) return response
      await response.body?.cancel()
      // Of several requests that were refused at the same time, one authorizes.
      if (client.token() === token) {
        authorizing ??= authorize(response).finally(() => {
          authorizing = undefined
        })
        await authorizing
      }
    }
  }
}

function isOfOrigin(text: string | undefined, url: URL): boolean {
  return text !== undefined && URL.canParse(text) && new URL(text).origin === url.origin
}

function needsAuthorization(response: Response): boolean {
  if (response.status === 401) return true
  return response.status === 403 && extractWWWAuthenticateParams(response).error === 'insufficient_scope'
}

function createClient(secret: OAuth2Secret, fetchFn: FetchLike, conceal: (secrets: readonly string[]) => void) {
  const { clientId, clientSecret, scopes } = secret
  const state = randomBytes(16).toString('base64url')
  let information: StoredOAuthClientInformation | undefined =
    clientId === undefined ? undefined : { client_id: clientId, client_secret: clientSecret }
  let tokens: StoredOAuthTokens | undefined
  let verifier = ''
  let discovered: OAuthDiscoveryState | undefined
  let answer: { code: string; iss: string | undefined } | undefined

  const provider: OAuthClientProvider = {
    redirectUrl: REDIRECT_URL,
    clientMetadata: {
      client_name: 'Errand',
      redirect_uris: [REDIRECT_URL],
      scope: scopes?.join(' '),
    },
    state: () => state,
    clientInformation: () => information,
    saveClientInformation(saved) {
      information = saved
      conceal('client_secret' in saved && saved.client_secret ? [saved.client_secret] : [])
    },
    tokens: () => tokens,
    saveTokens(saved) {
      tokens = saved
      conceal([saved.access_token, saved.refresh_token].filter((token) => token !== undefined))
    },
    saveCodeVerifier(saved) {
      verifier = saved
    },
    codeVerifier: () => verifier,
    saveDiscoveryState(saved) {
      discovered = saved
    },
    discoveryState: () => discovered,
    async redirectToAuthorization(url) {
      answer = await followToCode(url, state, fetchFn)
    },
  }
  return {
    provider,
    token: () => tokens?.access_token,
    rediscover() {
      discovered = undefined
    },
    takeCode() {
      if (!answer) throw needsPerson()
      return answer
    },
  }
}

/** Follows redirects like a browser until the authorization code. Throws SignInRefused if a page would have to be shown. */
async function followToCode(start: URL, state: string, fetchFn: FetchLike) {
  let url = start
  for (let hops = 0; hops < MAX_REDIRECTS; hops++) {
    const response = await fetchFn(url, { redirect: 'manual' })
    await response.body?.cancel()
    const location = response.headers.get('location')
    if (response.status < 300 || response.status > 399 || location === null) throw needsPerson()
    url = new URL(location, url)
    if (url.origin + url.pathname !== REDIRECT_URL) continue
    const code = url.searchParams.get('code')
    if (code === null || url.searchParams.get('state') !== state) throw needsPerson()
    return { code, iss: url.searchParams.get('iss') ?? undefined }
  }
  throw needsPerson()
}

function needsPerson(): SignInRefused {
  return new SignInRefused(
    'The server requires a person to sign in, which is not possible during a run. Sign in elsewhere, and store the refresh token as a credential.',
  )
}
