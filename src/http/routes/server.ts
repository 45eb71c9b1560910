/** What this server is: what `doctor` and the start log tell the operator, as far as callers may know it. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { headers } from '../request/queries.ts'

export function serverRoutes(app: FastifyInstance, { documented, facts, catalogue, limits }: Edge): void {
  app.get(
    '/v1beta/server',
    {
      schema: keyed({
        id: 'getServer',
        tag: 'Server',
        headers: z.object(headers.revision),
        summary: 'What this server is',
        description:
          'Its version; what its sandboxes enforce on this host and what they do not; its models, tools and limits. As found when it started, on its workers where it has no sandboxes of its own.',
        answer: documented.schemas.server,
      }),
    },
    async (request) => request.codec.server.encode(facts, catalogue, limits),
  )
}
