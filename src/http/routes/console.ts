/**
 * The web console: what `console/` was built into, served as it is. It holds nothing: its scripts ask the API as any
 * other client does. Every address below it that is no file is a page of its own, and gets the same document.
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

/** Our own scripts, which may speak to this server alone; no text ever becomes HTML or code. */
function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    // Dialogs hold the page behind them still by one style element, which carries the nonce.
    `style-src 'self' 'nonce-${nonce}'`,
    "font-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob:",
    'frame-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // The reader of PDFs, which is a worker (console/src/trace/pdf.tsx).
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
      // What works as a worker lives by the policy of its own file: it asks nobody for anything.
      if (file) return sendFile(request, reply.header('Content-Security-Policy', "default-src 'none'"), name, file)
      // What a page asks for must not be answered with a page.
      if (/^(assets|api|auth)\//.test(name)) throw new ErrandError('not_found', 'There is nothing of that name here.')
      return sendPage(request, reply)
    },
  )
}
