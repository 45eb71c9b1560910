/** Delivery attempts of an interaction's webhook: `GET /v1beta/interactions/{id}/deliveries`. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { headers, idParam } from '../request/queries.ts'
import { INTERACTIONS } from '../response/respond.ts'
import { INTERACTION_TEXTS as TEXTS } from './interaction-texts.ts'

export function deliveryRoutes(app: FastifyInstance, { engine, documented }: Edge): void {
  app.get<{ Params: z.infer<typeof idParam> }>(
    `${INTERACTIONS}/:id(^[A-Za-z0-9_-]+)/deliveries`,
    {
      schema: keyed({
        ...TEXTS.deliveries,
        tag: 'Interactions',
        headers: z.object(headers.revision),
        params: idParam,
        answer: documented.schemas.deliveries,
        errors: ['not_found'],
      }),
    },
    async (request) => {
      return request.codec.webhooks.encodeDeliveries(
        await engine.webhookLog(request.caller.projectId, request.params.id),
      )
    },
  )
}
