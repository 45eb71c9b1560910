/** Describes the server to callers: the part of `doctor` and the start log that is not confidential. */
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
        summary: 'Describe the server',
        description:
          'Returns the version, what the sandboxes enforce on this host, and the models, tools and limits. The sandbox facts are found at start; a server without sandboxes shows those of its workers.',
        answer: documented.schemas.server,
      }),
    },
    async (request) => request.codec.server.encode(facts, catalogue, limits),
  )
}
