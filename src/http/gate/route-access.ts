/** Access rules of a route: the callers that it admits, and the body that it takes. */
import type { Scope } from '../../accounts/scopes.ts'

export interface RouteAccess {
  /** Needs no key. */
  readonly open?: boolean
  /** Belongs to the console's own API and needs no key. With `session`, the caller must be signed in. */
  readonly console?: 'open' | 'session'
  /** Key scopes that may call it, besides `all`. Default: `read` for GET and HEAD, none for other methods. */
  readonly scopes?: readonly Scope[]
  /** Its calls count against the limit on new interactions. */
  readonly creates?: boolean
  /** Takes a JSON body. `optional`: the body may be absent. */
  readonly json?: boolean | 'optional'
  /** Takes a zip, or a form with one. */
  readonly upload?: boolean
}
