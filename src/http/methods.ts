/** Finds the methods of a path, for 405 responses with `Allow`. */
import type { FastifyInstance, RouteOptions } from 'fastify'
import createRouter from 'find-my-way'
import type { RouteAccess } from './gate/route-access.ts'

/** Information about a path, for requests with a method that it does not have. */
export interface Refusal extends Pick<RouteAccess, 'open' | 'console'> {
  /** Pattern of the path's routes. */
  readonly url: string
  /** Methods of the path, for `Allow`. */
  readonly allow: string
}

export interface Addresses {
  /** Records the routes that are registered on `app` from now on. */
  learn(app: FastifyInstance): void
  /** Undefined if the path does not exist. */
  refusal(url: string): Refusal | undefined
}

/**
 * A router by the address alone. Fastify keeps a tree for each method: with the 33 that most addresses do not have, its
 * router took 16 MB, and a tenth of the time of a start.
 */
export function createAddresses(): Addresses {
  const served = new Map<string, { methods: Set<string> } & Pick<RouteAccess, 'open' | 'console'>>()
  let router: ReturnType<typeof createRouter> | undefined
  return {
    learn(app) {
      app.addHook('onRoute', (route: RouteOptions) => {
        const { open, console } = route.config ?? {}
        const entry = served.get(route.url) ?? { methods: new Set(), open, console }
        for (const method of [route.method].flat()) entry.methods.add(method)
        served.set(route.url, entry)
      })
    },
    refusal(url) {
      router ??= routerOf(served)
      return router.find('GET', url)?.store as Refusal | undefined
    },
  }
}

function routerOf(served: ReadonlyMap<string, { readonly methods: ReadonlySet<string> }>) {
  const router = createRouter()
  for (const [url, { methods, ...access }] of served) {
    router.on('GET', url, () => {}, { ...access, url, allow: [...methods].sort().join(', ') } satisfies Refusal)
  }
  return router
}
