/**
 * The web console: serves the files built from `console/` unchanged. It has no data of its own: its scripts call the
 * API like any other client. Every path below `/console` that is not a file returns the same document, whose scripts
 * show the page for that path.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ErrandError } from '../../domain/errors.ts'
import { CONSOLE_TAG } from '../openapi/openapi.ts'
import { open } from '../openapi/route-docs.ts'
import { openBuilt, sendFile, sendNotBuilt } from '../response/static-files.ts'

const BUILT = join(import.meta.dirname, '../../../console/dist')

/**
 * Content Security Policy of the pages: only the console's own scripts, which may connect only to this server. No
 * string is ever interpreted as HTML or code.
 */
function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    // Dialogs use one style element, which carries the nonce, to stop the page behind them from scrolling.
    `style-src 'self' 'nonce-${nonce}'`,
    "font-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob:",
    'frame-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // The worker of the PDF viewer (console/src/trace/pdf.tsx).
    'trusted-types errand-pdf-reader',
  ].join('; ')
}

export function consoleRoutes(app: FastifyInstance): void {
  const files = openBuilt(BUILT)

  const sendPage = async (_request: FastifyRequest, reply: FastifyReply) => {
    const page = files().get('index.html')?.bytes.toString()
    if (page === undefined) return sendNotBuilt(reply, 'The console')
    const nonce = randomBytes(16).toString('base64')
    return reply
      .headers({
        'Cache-Control': 'no-store',
        'Content-Security-Policy': policy(nonce),
        'Cross-Origin-Opener-Policy': 'same-origin',
        'Referrer-Policy': 'no-referrer',
      })
      .type('text/html; charset=utf-8')
      .send(page.replace('%NONCE%', nonce))
  }

  app.get(
    '/',
    {
      config: { open: true },
      schema: open({
        id: 'root',
        tag: CONSOLE_TAG,
        summary: 'The first page',
        description: 'Redirects to the console.',
        other: ['text/html', z.string()],
      }),
    },
    async (_request, reply) => reply.redirect('/console/', 302),
  )
  app.get(
    '/console',
    {
      config: { open: true },
      schema: open({
        id: 'console',
        tag: CONSOLE_TAG,
        summary: 'The console',
        description: 'The web console, as a page; so is every address below it.',
        other: ['text/html', z.string()],
      }),
    },
    sendPage,
  )
  app.get<{ Params: { '*': string } }>(
    '/console/*',
    { config: { open: true }, schema: { hide: true } },
    async (request, reply) => {
      const name = request.params['*']
      const file = name === 'index.html' ? undefined : files().get(name)
      // A worker is subject to the policy of its own file. This policy allows it no requests.
      if (file) return sendFile(request, reply.header('Content-Security-Policy', "default-src 'none'"), name, file)
      // Missing files that a page loads must return 404, not the page.
      if (/^(assets|api|auth)\//.test(name)) throw new ErrandError('not_found', 'There is nothing of that name here.')
      return sendPage(request, reply)
    },
  )
}
