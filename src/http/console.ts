/** The web console's first page: what this server is. The page holds nothing; its script asks the API with the visitor's key. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { CONSOLE } from './console-page.ts'
import { CONSOLE_STYLE } from './console-style.ts'
import { open } from './route-docs.ts'

/** One script, ours, which may speak to this server alone; no text ever becomes HTML or code. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
const HEADERS = { 'Cache-Control': 'public, max-age=300' }

export function consoleRoutes(app: FastifyInstance): void {
  const script = readFileSync(join(import.meta.dirname, 'console-script.js'), 'utf8')

  app.get(
    '/console',
    {
      config: { open: true },
      schema: open({
        id: 'console',
        tag: 'Server',
        summary: 'The console',
        description: 'What this server is, as a page. It asks for an API key, which stays in the browser’s tab.',
        other: ['text/html', z.string()],
      }),
    },
    async (_request, reply) =>
      reply
        .headers({ ...HEADERS, 'Content-Security-Policy': POLICY, 'Referrer-Policy': 'no-referrer' })
        .type('text/html; charset=utf-8')
        .send(CONSOLE),
  )

  const parts = { 'style.css': ['text/css', CONSOLE_STYLE], 'script.js': ['text/javascript', script] } as const
  for (const [name, [type, text]] of Object.entries(parts)) {
    app.get(`/console/${name}`, { config: { open: true }, schema: { hide: true } }, async (_request, reply) =>
      reply.headers(HEADERS).type(`${type}; charset=utf-8`).send(text),
    )
  }
}
