/** What a request asked for, in words that are ours: the pattern of its route, which holds nothing that a caller wrote. */
import type { FastifyRequest } from 'fastify'

/** `/v1beta/interactions/:id`; `none` where the address is no route, whoever guesses addresses. */
export function routeOf(request: FastifyRequest): string {
  // Without the patterns of its parameters.
  const url = request.is404 ? request.refusal?.url : request.routeOptions.url
  return (url ?? 'none').replace(/\([^()]*\)/g, '')
}
