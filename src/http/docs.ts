/** The OpenAPI document at /openapi.json, and the same for people at /docs. Both need no key and hold no secret. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { renderDocs } from './docs-page.ts'
import { STYLE } from './docs-style.ts'
import type { Edge } from './edge.ts'
import type { JsonObject } from './openapi.ts'
import { open } from './route-docs.ts'

/** Nothing is loaded from elsewhere, and no script runs. */
const POLICY =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const CACHE = { 'Cache-Control': 'public, max-age=300' }

/** `publicUrl` as configured; without it, the address that the server listens on stands in the examples. */
export function docsRoutes(app: FastifyInstance, { limits }: Edge, publicUrl: string | undefined): void {
  const text = z.string()

  app.get(
    '/openapi.json',
    {
      config: { open: true },
      schema: open({
        id: 'openapi',
        tag: 'Server',
        summary: 'This API as OpenAPI 3.1',
        description: 'Made from the schemas that validate requests.',
        answer: z.looseObject({ openapi: z.string() }),
      }),
    },
    async (_request, reply) => reply.headers(CACHE).send(app.swagger()),
  )

  app.get(
    '/docs',
    {
      config: { open: true },
      schema: open({
        id: 'docs',
        tag: 'Server',
        summary: 'This reference',
        description: 'The API reference for people.',
        other: ['text/html', text],
      }),
    },
    async (_request, reply) => {
      const base = publicUrl ?? (app.server.listening ? app.listeningOrigin : 'http://127.0.0.1:8080')
      const page = renderDocs(app.swagger() as unknown as JsonObject, limits, base)
      return reply
        .headers({ ...CACHE, 'Content-Security-Policy': POLICY })
        .type('text/html; charset=utf-8')
        .send(page)
    },
  )

  app.get('/docs/style.css', { config: { open: true }, schema: { hide: true } }, async (_request, reply) =>
    reply.headers(CACHE).type('text/css; charset=utf-8').send(STYLE),
  )
}
