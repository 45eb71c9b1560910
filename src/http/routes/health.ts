/** Liveness and readiness checks, for load balancers and supervisors. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ErrandError } from '../../domain/errors.ts'
import type { Edge } from '../edge.ts'
import { open } from '../openapi/route-docs.ts'

export function healthRoutes(app: FastifyInstance, { engine, closing, workers }: Edge): void {
  app.get(
    '/healthz',
    {
      config: { open: true },
      schema: open({
        id: 'healthz',
        tag: 'Server',
        summary: 'Check that the server is alive',
        description: 'Returns 200 if the process responds.',
        answer: z.object({ status: z.literal('ok') }),
      }),
    },
    async () => ({ status: 'ok' }),
  )

  app.get(
    '/readyz',
    {
      config: { open: true },
      schema: open({
        id: 'readyz',
        tag: 'Server',
        summary: 'Check that the server is ready',
        description: 'Returns 200 if the server can accept interactions, otherwise 503 with the reason.',
        answer: z.object({
          status: z.literal('ready'),
          workers: z.int().min(0).optional().meta({
            description:
              'Number of nodes that run interactions, if several nodes share one Postgres. With none, new interactions wait.',
          }),
        }),
        errors: ['unavailable'],
      }),
    },
    async () => {
      const ready = closing.aborted ? 'The server is closing.' : await engine.ready()
      if (ready !== true) throw new ErrandError('unavailable', ready)
      return { status: 'ready', workers: workers?.() }
    },
  )
}
