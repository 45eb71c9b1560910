/** An interaction's events in pages, with the time of each event. For timelines. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { headers, idParam, page, pageSizeOf } from '../request/queries.ts'
import { INTERACTIONS, noInteraction } from '../response/respond.ts'

const pageQuery = z.object(page)

export function eventLogRoutes(app: FastifyInstance, { engine, documented }: Edge): void {
  app.get<{ Params: z.infer<typeof idParam>; Querystring: z.infer<typeof pageQuery> }>(
    `${INTERACTIONS}/:id(^[A-Za-z0-9_-]+)/events`,
    {
      schema: keyed({
        id: 'listEvents',
        tag: 'Interactions',
        summary: 'Read an interaction’s events',
        description:
          'Returns the events of the stream as a list, each with the time at which it was stored. Also works while the interaction runs.',
        headers: z.object(headers.revision),
        params: idParam,
        query: pageQuery,
        answer: documented.schemas.eventList,
        errors: ['not_found'],
      }),
    },
    async (request) => {
      const { id } = request.params
      const identity = { path: `${INTERACTIONS}/${id}/events` }
      const found = await engine.events(request.caller.projectId, id, {
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, request.query.pageToken),
      })
      if (!found) throw noInteraction(id)
      return request.codec.events.encodeList(found.events, writePageToken(identity, found.next))
    },
  )
}
