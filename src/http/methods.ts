/** 405 with `Allow` for every method that an address does not have. */
import { METHODS } from 'node:http'
import type { FastifyInstance, RouteOptions } from 'fastify'
import type { RouteAccess } from './gate.ts'

/** `CONNECT` never becomes a request. */
const REFUSABLE = METHODS.filter((method) => method !== 'CONNECT')

/** Runs `register`, then gives each address that it registered a route for the other methods. */
export function refuseOtherMethods(app: FastifyInstance, register: () => void): void {
  const served = new Map<string, { methods: Set<string> } & Pick<RouteAccess, 'open' | 'console'>>()
  app.addHook('onRoute', (route: RouteOptions) => {
    if (route.config?.allow !== undefined) return
    const { open, console } = route.config ?? {}
    const entry = served.get(route.url) ?? { methods: new Set(), open, console }
    for (const method of [route.method].flat()) entry.methods.add(method)
    served.set(route.url, entry)
  })
  register()
  for (const method of REFUSABLE) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  }
  for (const [url, { methods, ...access }] of served) {
    app.route({
      url,
      method: REFUSABLE.filter((method) => !methods.has(method)),
      // HEAD is there wherever GET is.
      exposeHeadRoute: false,
      config: { ...access, allow: [...methods].sort().join(', ') },
      schema: { hide: true },
      // The gate answers before.
      handler: (_request, reply) => reply.callNotFound(),
    })
  }
}
