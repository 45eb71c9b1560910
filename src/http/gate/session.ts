/**
 * Calls with a session cookie, from the console. Browsers send cookies with requests from any site. So requests that change
 * something must come from this server's own site, and have a header that other sites can't set: CORS never allows it.
 */
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../../accounts/accounts.ts'
import type { Members } from '../../accounts/members.ts'
import type { Origin, SignIn, Visitor } from '../../accounts/sign-in.ts'
import { ErrandError } from '../../domain/errors.ts'
import { networkOf } from '../../egress/address.ts'

/** Names the project of a call to the API, instead of a key. */
export const PROJECT_HEADER = 'x-errand-project'
/** Required for calls of the console's own API that change something. */
export const CONSOLE_HEADER = 'x-errand-console'

export interface Sessions {
  /** Throws ErrandError `permission_denied` if an unsafe call comes from another site or lacks the header. */
  checkSite(request: FastifyRequest, header: string): void
  /** Throws ErrandError `unauthenticated`. */
  visitor(request: FastifyRequest): Promise<Visitor>
  /** The caller, from the session and the project header. Throws ErrandError `unauthenticated`, `permission_denied`, `not_found`. */
  caller(request: FastifyRequest): Promise<Caller>
}

export function createSessions(
  { signIn, members }: { readonly signIn: SignIn; readonly members: Members },
  publicUrl: () => string | undefined,
): Sessions {
  function checkSite(request: FastifyRequest, header: string): void {
    if (['GET', 'HEAD', 'OPTIONS'].includes(request.method)) return
    const { origin, host, 'sec-fetch-site': site } = request.headers
    const elsewhere = site !== undefined ? site !== 'same-origin' : origin === undefined
    const from = origin === undefined ? host : hostOf(origin)
    if (elsewhere || from === undefined || (from !== host && from !== hostOf(publicUrl()))) {
      throw new ErrandError('permission_denied', 'A session is good for calls from the console’s own pages alone.')
    }
    if (request.headers[header] === undefined) {
      throw new ErrandError('permission_denied', `The header ${header} is missing.`)
    }
  }

  async function visitor(request: FastifyRequest): Promise<Visitor> {
    const found = await signIn.visitor(request.headers.cookie)
    if (!found) throw new ErrandError('unauthenticated', 'You are not signed in, or your session is over.')
    return found
  }

  return {
    checkSite,
    visitor,
    async caller(request) {
      const { userId } = await visitor(request)
      checkSite(request, PROJECT_HEADER)
      const projectId = String(request.headers[PROJECT_HEADER])
      const membership = await members.findByProject(userId, projectId)
      if (!membership) throw noProject(projectId)
      const { accountId, role, enabled } = membership
      return { keyId: userId, projectId, accountId, enabled, scope: role === 'viewer' ? 'read' : 'all' }
    },
  }
}

/** The parts of a request that signing in needs. */
export function originOf(request: FastifyRequest): Origin {
  const { cookie, 'user-agent': userAgent } = request.headers
  return { cookie, userAgent, address: request.ip, network: networkOf(request.ip) }
}

export function noProject(id: string): ErrandError {
  return new ErrandError('not_found', `There is no project ${JSON.stringify(id.slice(0, 80))}.`)
}

function hostOf(url: string | undefined): string | undefined {
  return url !== undefined && URL.canParse(url) ? new URL(url).host : undefined
}
