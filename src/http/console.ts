/**
 * The web console: what `console/` was built into, served as it is. It holds nothing: its scripts ask the API as any
 * other client does. Every address below it that is no file is a page of its own, and gets the same document.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import mime from 'mime'
import { z } from 'zod'
import { ErrandError } from '../domain/errors.ts'
import { open } from './route-docs.ts'

const BUILT = join(import.meta.dirname, '../../console/dist')
const COMPRESSIBLE = /^(text\/|application\/json|image\/svg)/
const compress = promisify(gzip)

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
    "trusted-types 'none'",
  ].join('; ')
}

interface BuiltFile {
  readonly type: string
  readonly bytes: Buffer
  /** Made once, when it is first asked for. */
  zipped?: Promise<Buffer>
}

export function consoleRoutes(app: FastifyInstance): void {
  const files = readBuilt()
  const page = files.get('index.html')?.bytes.toString()

  const sendPage = async (_request: FastifyRequest, reply: FastifyReply) => {
    if (page === undefined) throw new ErrandError('unavailable', 'The console is not built: run script/setup.')
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
    '/console',
    {
      config: { open: true },
      schema: open({
        id: 'console',
        tag: 'Server',
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
      const file = name === 'index.html' ? undefined : files.get(name)
      if (file) return sendFile(request, reply, name, file)
      // What a page asks for must not be answered with a page.
      if (/^(assets|api|auth)\//.test(name)) throw new ErrandError('not_found', 'There is nothing of that name here.')
      return sendPage(request, reply)
    },
  )
}

/** Names of assets hold a hash of what is in them: they never change. */
async function sendFile(request: FastifyRequest, reply: FastifyReply, name: string, file: BuiltFile) {
  reply.headers({
    'Cache-Control': name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'public, max-age=300',
    'Content-Type': file.type,
    Vary: 'Accept-Encoding',
  })
  if (!COMPRESSIBLE.test(file.type) || !/\bgzip\b/.test(String(request.headers['accept-encoding']))) {
    return reply.send(file.bytes)
  }
  file.zipped ??= compress(file.bytes, { level: 9 })
  return reply.header('Content-Encoding', 'gzip').send(await file.zipped)
}

/** Everything that was built, by its path; nothing where nothing was. */
function readBuilt(): ReadonlyMap<string, BuiltFile> {
  const files = new Map<string, BuiltFile>()
  if (!existsSync(BUILT)) return files
  for (const entry of readdirSync(BUILT, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.startsWith('.')) continue
    const path = join(entry.parentPath, entry.name)
    const type = mime.getType(entry.name) ?? 'application/octet-stream'
    files.set(relative(BUILT, path), {
      type: COMPRESSIBLE.test(type) ? `${type}; charset=utf-8` : type,
      bytes: readFileSync(path),
    })
  }
  return files
}
