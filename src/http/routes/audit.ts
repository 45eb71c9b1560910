/** The network audit of an interaction: the hosts to which it connected or was refused to connect. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { headers, idParam, page, pageSizeOf } from '../request/queries.ts'
import { INTERACTIONS, noInteraction } from '../response/respond.ts'

const pageQuery = z.object(page)

export function auditRoutes(app: FastifyInstance, { engine, documented }: Edge): void {
  app.get<{ Params: z.infer<typeof idParam>; Querystring: z.infer<typeof pageQuery> }>(
    `${INTERACTIONS}/:id(^[A-Za-z0-9_-]+)/audit`,
    {
      schema: keyed({
        id: 'listAudit',
        tag: 'Interactions',
        summary: 'Read an interaction’s network audit',
        description:
          'Returns every host that the interaction connected to or was refused to connect to, oldest first. Also works while it runs.',
        headers: z.object(headers.revision),
        params: idParam,
        query: pageQuery,
        answer: documented.schemas.audit,
        errors: ['not_found'],
      }),
    },
    async (request) => {
      const { id } = request.params
      const identity = { path: `${INTERACTIONS}/${id}/audit` }
      const found = await engine.audit(request.caller.projectId, id, {
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, request.query.pageToken),
      })
      if (!found) throw noInteraction(id)
      return request.codec.audit.encodeList(found.entries, writePageToken(identity, found.next))
    },
  )
}
