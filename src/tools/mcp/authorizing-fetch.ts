/**
 * OAuth for a caller that has no token yet: this server registers itself as a client (or is one by the `clientId` it was
 * given, which may be the address of a client's metadata) and asks for authorization with PKCE. There is no person at a
 * run, so it ends well only where the authorization server grants what is asked without one, as those inside a company
 * do; everywhere else somebody has to sign in elsewhere and store the refresh token as a credential.
 *
 * Nothing of ours is given away in it: what is sent to the places that the server names is new and meant for them.
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

/** Nothing listens there: the answer is read from the redirect to it, which is not followed. */
const REDIRECT_URL = 'http://127.0.0.1/callback'
const MAX_REDIRECTS = 5
/** A server that is never content is asked no further. */
const MAX_TRIES = 3

/** A fetch that signs in where it is refused, and asks for more where its token is too weak. */
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

  /** The first revision of the protocol lets a server say anything of its own place; of another one's it may not. */
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
    // A server may have moved to another authorization server, where this client is not known.
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
      // Of several that were refused at once, one asks.
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

/** As a browser goes, without anybody to click. Throws SignInRefused where a page comes. */
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
    'The server wants a person to sign in, and there is none at a run. Sign in elsewhere, and store the refresh token as a credential.',
  )
}
