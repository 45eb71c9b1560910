/** Decisions on pending tool calls: `POST /v1beta/interactions/{id}:approve`, and the same path with a slash. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { parsePrefer } from '../request/preferences.ts'
import { headers, idParam, view } from '../request/queries.ts'
import { answerNow, formOf, INTERACTIONS } from '../response/respond.ts'
import { INTERACTION_TEXTS as TEXTS } from './interaction-texts.ts'

const ID = ':id(^[A-Za-z0-9_-]+)'
const viewQuery = z.object({ view })

export function approvalRoutes(app: FastifyInstance, edge: Edge): void {
  for (const [text, path] of Object.entries({ approve: `${ID}::approve`, approveBySlash: `${ID}/approve` })) {
    app.post<{ Params: z.infer<typeof idParam>; Querystring: z.infer<typeof viewQuery> }>(
      `${INTERACTIONS}/${path}`,
      {
        config: { json: 'optional' },
        schema: keyed({
          ...TEXTS[text as 'approve'],
          tag: 'Interactions',
          headers: z.object({ ...headers.revision, ...headers.minimal }),
          params: idParam,
          query: viewQuery,
          body: edge.documented.schemas.approval,
          answer: edge.documented.schemas.interaction,
          errors: ['not_found', 'conflict'],
        }),
      },
      async (request, reply) => {
        const interactionId = request.params.id
        const verdict = request.codec.approvals.decode(request.body)
        const { projectId, keyId } = request.caller
        await edge.engine.approve(projectId, interactionId, verdict, keyId)
        const preferences = parsePrefer(request.headers.prefer)
        const form = formOf(request.query.view, preferences)
        return answerNow(edge, request, reply, { interactionId, form, preferences })
      },
    )
  }
}
