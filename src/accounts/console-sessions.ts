/** Sessions of the console: whose a cookie is, listing them, ending them. */
import { assertMade, type Database } from '../store/port.ts'
import type { SignIn } from './sign-in.ts'
import { COOKIE, headersOf, type SignInLibrary } from './sign-in-library.ts'

/** Minimum time between two writes of a session's `updated_at`, which is only shown to people. */
const LAST_USED_MS = 60_000

type Sessions = Pick<SignIn, 'visitor' | 'end' | 'sessions' | 'endSessions'>

export function createConsoleSessions(
  db: Database,
  library: () => Promise<SignInLibrary>,
  now: () => number,
): Sessions {
  return {
    async visitor(cookie) {
      if (!cookie?.includes(COOKIE)) return undefined
      const { api } = await library()
      const found = await api.getSession({ headers: new Headers({ cookie }) })
      if (!found) return undefined
      const { session, user } = found
      const { updatedAt } = session
      if (now() - updatedAt.getTime() > LAST_USED_MS) {
        const query = db.query.updateTable('sessions').set({ updated_at: now() }).where('id', '=', session.id).compile()
        // Only shown to people.
        db.write([{ query }]).catch(() => {})
      }
      return {
        sessionId: session.id,
        userId: user.id,
        name: user.name,
        email: user.email,
        createdAt: user.createdAt.getTime(),
      }
    },

    async end(origin) {
      const { api } = await library()
      return (await api.signOut({ headers: headersOf(origin), asResponse: true })).headers.getSetCookie()
    },

    async sessions(userId) {
      const rows = await db.query
        .selectFrom('sessions')
        .selectAll()
        .where('user_id', '=', userId)
        .where('expires_at', '>', now())
        .orderBy('id', 'desc')
        .execute()
      return rows.map((row) => ({
        id: row.id,
        createdAt: Number(row.created_at),
        lastUsedAt: Number(row.updated_at),
        expiresAt: Number(row.expires_at),
        ipAddress: row.ip_address || undefined,
        userAgent: row.user_agent || undefined,
      }))
    },

    async endSessions(userId, which) {
      const result = await db.write([{ query: endSessionsQuery(db, userId, which) }])
      assertMade(result)
      return result.rows[0]!.length
    },
  }
}

/** Deletes all sessions of the user, or `only` that one, or all `but` that one. */
export function endSessionsQuery(
  db: Database,
  userId: string,
  which: { readonly only?: string; readonly but?: string | undefined },
) {
  let query = db.query.deleteFrom('sessions').where('user_id', '=', userId)
  if (which.only !== undefined) query = query.where('id', '=', which.only)
  if (which.but !== undefined) query = query.where('id', '!=', which.but)
  return query.returning('id').compile()
}
