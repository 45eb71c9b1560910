/** Signing in with an OpenID Connect provider. */
import { ErrandError } from '../domain/errors.ts'
import type { SignIn, SignInOptions } from './sign-in.ts'
import { AUTH_PATH, headersOf, OIDC, openSignInLibrary, type SignInLibrary } from './sign-in-library.ts'

export function createOidc(options: SignInOptions): Pick<SignIn, 'beginOidc' | 'finishOidc'> {
  // Not shared with passwords: setting it up waits for the provider, and passwords must not.
  let opened: Promise<SignInLibrary> | undefined
  const library = () => {
    opened ??= openSignInLibrary(options)
    return opened
  }
  return {
    async beginOidc(paths, origin) {
      if (!options.oidc) throw new ErrandError('not_found', 'No sign-in provider is configured on this server.')
      const { api } = await library()
      const answer = await api.signInSocial({
        body: { provider: OIDC, disableRedirect: true, ...paths },
        headers: headersOf(origin),
        asResponse: true,
      })
      const { url } = (await answer.json()) as { url?: string }
      if (answer.ok && url) return { url, cookies: answer.headers.getSetCookie() }
      // The library got no configuration from the provider. The next attempt asks again.
      opened = undefined
      throw new ErrandError('unavailable', `${options.oidc.name} does not answer. Try again later.`)
    },

    async finishOidc(query, origin) {
      const { handler } = await library()
      const url = `${options.publicUrl()}${AUTH_PATH}/callback/${OIDC}${query}`
      const answer = await handler(new Request(url, { headers: headersOf(origin) }))
      return { location: answer.headers.get('location') ?? '/console', cookies: answer.headers.getSetCookie() }
    },
  }
}
