/** Signing in to the console, on better-auth. */
import { createConsoleSessions } from './console-sessions.ts'
import { createOidc } from './oidc.ts'
import { createPasswords } from './passwords.ts'
import type { SignIn, SignInOptions } from './sign-in.ts'
import { openSignInLibrary, type SignInLibrary } from './sign-in-library.ts'

export function createSignIn(options: SignInOptions): SignIn {
  const { db, oidc, now = Date.now } = options
  let opened: Promise<SignInLibrary> | undefined
  // Opened at the first use, because loading it takes time that most servers never need to spend.
  const library = () => {
    opened ??= openSignInLibrary({ ...options, oidc: undefined })
    return opened
  }
  const sessions = createConsoleSessions(db, library, now)
  return {
    oidc: oidc && { name: oidc.name },
    ...sessions,
    ...createPasswords(options, library, sessions.end),
    ...createOidc(options),
  }
}
