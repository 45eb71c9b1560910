/** The route pattern of a request, for logs and metrics. It contains nothing that a caller wrote. */
import type { FastifyRequest } from 'fastify'

/** Returns a pattern such as `/v1beta/interactions/:id`, or `none` if the path is not a route. */
export function routeOf(request: FastifyRequest): string {
  // Without the patterns of its parameters.
  const url = request.is404 ? request.refusal?.url : request.routeOptions.url
  return (url ?? 'none').replace(/\([^()]*\)/g, '')
}
