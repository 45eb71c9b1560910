/**
 * The documentation: serves the files built from `site/` unchanged, and the OpenAPI documents. None of it needs a key
 * or contains a secret.
 */
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Config } from '../../config.ts'
import { withoutEnd } from '../../domain/trim.ts'
import { CONSOLE_TAG, type JsonObject, publicApiOf, servedFrom } from '../openapi/openapi.ts'
import { open } from '../openapi/route-docs.ts'
import { openBuilt, sendFile, sendNotBuilt } from '../response/static-files.ts'

const BUILT = join(import.meta.dirname, '../../../site/dist')

/**
 * Content Security Policy of the pages: only the site's own scripts and styles. No string is ever interpreted as HTML
 * or code.
 */
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

/** Adds the routes. `publicUrl` returns the configured URL of this server, or else the one that it listens on. */
export function docsRoutes(app: FastifyInstance, config: Pick<Config, 'publicUrl'>, publicUrl: () => string): void {
  openApiRoutes(app, config, publicUrl)
  const files = openBuilt(BUILT)

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
      const found = [name, `${name}.html`].find((each) => files().has(each))
      const page = files().get(found ?? '404.html')
      if (!page) return sendNotBuilt(reply, 'The documentation')
      reply.header('Content-Security-Policy', POLICY).header('Referrer-Policy', 'no-referrer')
      return sendFile(request, found === undefined ? reply.code(404) : reply, found ?? '404.html', page)
    },
  )
}

/** Maximum number of cached documents. Bounded, because each value of the Host header can add one. */
const MAX_RENDERED = 8

function openApiRoutes(app: FastifyInstance, config: Pick<Config, 'publicUrl'>, publicUrl: () => string): void {
  const everything = () => app.swagger() as unknown as JsonObject
  let api: JsonObject | undefined
  /** The most recent documents by path and server URL. All responses share the bytes. */
  const rendered = new Map<string, Buffer>()
  const answer = z.looseObject({ openapi: z.string() })

  /**
   * Sends a document with this server's URL: the configured one, else that of the request's Host header, else the
   * listening one.
   */
  function send(request: FastifyRequest, reply: FastifyReply, document: () => JsonObject) {
    const asked = URL.parse(`${request.protocol}://${request.host}`)?.origin
    const url = withoutEnd(config.publicUrl ?? asked ?? publicUrl(), '/')
    const key = `${request.routeOptions.url} ${url}`
    const bytes = rendered.get(key) ?? Buffer.from(JSON.stringify(servedFrom(document(), url)))
    if (rendered.size === MAX_RENDERED) rendered.clear()
    rendered.set(key, bytes)
    return reply.header('Cache-Control', 'private, max-age=300').type('application/json; charset=utf-8').send(bytes)
  }

  app.get(
    '/openapi.json',
    {
      config: { open: true },
      schema: open({
        id: 'openapi',
        tag: 'Server',
        summary: 'This API as OpenAPI 3.1',
        description: 'Made from the schemas that validate requests.',
        answer,
      }),
    },
    async (request, reply) => {
      return send(request, reply, () => {
        api ??= publicApiOf(everything())
        return api
      })
    },
  )

  app.get(
    '/console/openapi.json',
    {
      config: { open: true },
      schema: open({
        id: 'consoleOpenapi',
        tag: CONSOLE_TAG,
        summary: 'What the console calls, as OpenAPI 3.1',
        description: 'The public API and the console’s own calls. The latter may change with any release.',
        answer,
      }),
    },
    async (request, reply) => send(request, reply, everything),
  )
}
