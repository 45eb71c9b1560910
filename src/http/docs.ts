/**
 * The documentation: what `site/` was built into, served as it is, and the OpenAPI document at /openapi.json. None of it needs
 * a key or holds a secret.
 */
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ErrandError } from '../domain/errors.ts'
import { readBuilt, sendFile } from './built.ts'
import { open } from './route-docs.ts'

const BUILT = join(import.meta.dirname, '../../site/dist')

/** Its own scripts and styles, nothing from elsewhere; no text ever becomes HTML or code. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

export function docsRoutes(app: FastifyInstance): void {
  const files = readBuilt(BUILT)

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
    async (_request, reply) => reply.header('Cache-Control', 'public, max-age=300').send(app.swagger()),
  )

  app.get(
    '/docs',
    {
      config: { open: true },
      schema: open({
        id: 'docs',
        tag: 'Server',
        summary: 'The documentation',
        description: 'Leads to `/docs/`, the first page; the others are below it.',
        other: ['text/html', z.string()],
      }),
    },
    async (_request, reply) => reply.redirect('/docs/', 302),
  )

  app.get<{ Params: { '*': string } }>(
    '/docs/*',
    { config: { open: true }, schema: { hide: true } },
    async (request, reply) => {
      const name = request.params['*'] || 'index.html'
      const found = [name, `${name}.html`].find((each) => files.has(each))
      const page = files.get(found ?? '404.html')
      if (!page) throw new ErrandError('unavailable', 'The documentation is not built: run script/setup.')
      reply.header('Content-Security-Policy', POLICY).header('Referrer-Policy', 'no-referrer')
      return sendFile(request, found === undefined ? reply.code(404) : reply, found ?? '404.html', page)
    },
  )
}
