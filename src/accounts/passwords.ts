/** Users with passwords: checking, setting, and limiting attempts. */
import { ErrandError } from '../domain/errors.ts'
import { createAttempts } from './attempts.ts'
import { endSessionsQuery } from './console-sessions.ts'
import type { Origin, SignIn, SignInOptions } from './sign-in.ts'
import { headersOf, type SignInLibrary } from './sign-in-library.ts'

/** Per 15 minutes: failures of an account, and all attempts from an address, which may be a whole office's. */
const MAX_ATTEMPTS = { ofAccount: 10, ofAddress: 100 }

type Passwords = Pick<SignIn, 'withPassword' | 'isPassword' | 'createUser' | 'setPassword'>

export function createPasswords(
  { db, onFailure, now = Date.now }: SignInOptions,
  library: () => Promise<SignInLibrary>,
  endSession: SignIn['end'],
): Passwords {
  const attempts = createAttempts(db, now)
  const failed = (email: string) => void onFailure(email).catch(() => {})

  async function admit(email: string, network: string): Promise<() => Promise<void>> {
    const account = `account ${email.toLowerCase()}`
    const limits = [
      [`address ${network}`, MAX_ATTEMPTS.ofAddress],
      [account, MAX_ATTEMPTS.ofAccount],
    ] as const
    for (const [who, limit] of limits) {
      const waitS = await attempts.begin(who, limit)
      if (waitS === undefined) continue
      failed(email)
      throw new ErrandError('rate_limited', `Too many attempts to sign in. Try again in ${waitS} s.`, {
        retryAfterS: waitS,
      })
    }
    return () => attempts.forget(account)
  }

  /** The library's response, or undefined if the password is wrong. */
  async function tryPassword(email: string, password: string, origin: Origin): Promise<Response | undefined> {
    const { api } = await library()
    const forget = await admit(email, origin.network)
    const response = await api.signInEmail({ body: { email, password }, headers: headersOf(origin), asResponse: true })
    if (!response.ok) {
      failed(email)
      return undefined
    }
    await forget()
    return response
  }

  return {
    async withPassword(email, password, origin) {
      const response = await tryPassword(email, password, origin)
      if (!response) throw new ErrandError('unauthenticated', 'The e-mail address or the password is wrong.')
      // An attacker may have planted the earlier session in this browser.
      if (origin.cookie !== undefined) await endSession(origin)
      return response.headers.getSetCookie()
    },

    async isPassword(email, password, origin) {
      const response = await tryPassword(email, password, { ...origin, cookie: undefined })
      if (!response) return false
      // Checking a password signs in: end that session.
      await endSession({
        ...origin,
        cookie: response.headers
          .getSetCookie()
          .map((line) => line.split(';')[0])
          .join('; '),
      })
      return true
    },

    async createUser({ name, email, password }) {
      const { internalAdapter, password: hasher } = await (await library()).$context
      const hash = await hasher.hash(password)
      const taken = () =>
        db.query.selectFrom('users').select('id').where('email', '=', email.toLowerCase()).executeTakeFirst()
      if (await taken()) return undefined
      const user = await internalAdapter.createUser({ name, email, emailVerified: false }, { method: 'email-password' })
      await internalAdapter.createAccount({
        userId: user.id,
        providerId: 'credential',
        accountId: user.id,
        password: hash,
      })
      return user.id
    },

    async setPassword(userId, password, keep) {
      const { internalAdapter, password: hasher } = await (await library()).$context
      const hash = await hasher.hash(password)
      const own = await db.query
        .selectFrom('identities')
        .select('id')
        .where('user_id', '=', userId)
        .where('provider_id', '=', 'credential')
        .executeTakeFirst()
      if (own) await internalAdapter.updatePassword(userId, hash)
      else await internalAdapter.createAccount({ userId, providerId: 'credential', accountId: userId, password: hash })
      await db.write([{ query: endSessionsQuery(db, userId, { but: keep }) }])
    },
  }
}
