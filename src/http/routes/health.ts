/** For load balancers and supervisors: is the process alive, and is it able to take work? */
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
        summary: 'Is it alive?',
        description: 'The process answers.',
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
        summary: 'Can it take work?',
        description: '503 with the reason while it can’t.',
        answer: z.object({
          status: z.literal('ready'),
          workers: z.int().min(0).optional().meta({
            description:
              'Of several nodes on one Postgres: those that work on interactions. Without any, what is sent waits.',
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
