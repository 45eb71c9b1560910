/** The files of a build, read once and served from memory: the console and the documentation. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import mime from 'mime'

const COMPRESSIBLE = /^(text\/|application\/json|image\/svg)/
const compress = promisify(gzip)

export interface BuiltFile {
  readonly type: string
  readonly bytes: Buffer
  readonly etag: string
  /** Made once, when it is first asked for. */
  zipped?: Promise<Buffer>
}

/**
 * All files of a build by their paths. The function returns an empty map until the build exists: at the first start of a
 * checkout, script/server builds in the background. A build appears whole, by a rename.
 */
export function openBuilt(directory: string): () => ReadonlyMap<string, BuiltFile> {
  let files = readBuilt(directory)
  return () => {
    if (files.size === 0) files = readBuilt(directory)
    return files
  }
}

/** A page for people that reloads until the build of `what` exists. The address, with what follows #, stays the same. */
export function sendNotBuilt(reply: FastifyReply, what: string) {
  return reply
    .code(503)
    .headers({
      'Cache-Control': 'no-store',
      'Content-Security-Policy': "default-src 'none'",
      'Referrer-Policy': 'no-referrer',
      'Retry-After': '5',
    })
    .type('text/html; charset=utf-8')
    .send(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="5">
<title>${what} is not built yet</title>
<p>${what} is not built yet. At its first start script/server builds it in the background, which takes a minute or two.
<p>This page reloads until it is ready. If that takes longer, run <code>script/setup</code> in the checkout: it builds it, or says why it cannot.
</html>
`)
}

function readBuilt(directory: string): ReadonlyMap<string, BuiltFile> {
  const files = new Map<string, BuiltFile>()
  if (!existsSync(directory)) return files
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.startsWith('.')) continue
    const path = join(entry.parentPath, entry.name)
    const type = mime.getType(entry.name) ?? 'application/octet-stream'
    const bytes = readFileSync(path)
    files.set(relative(directory, path), {
      type: COMPRESSIBLE.test(type) ? `${type}; charset=utf-8` : type,
      bytes,
      etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    })
  }
  return files
}

/** Names below `assets/` hold a hash of what is in them: they never change. The others are asked about again after five minutes. */
export async function sendFile(request: FastifyRequest, reply: FastifyReply, name: string, file: BuiltFile) {
  reply.headers({
    'Cache-Control': name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'public, max-age=300',
    'Content-Type': file.type,
    ETag: file.etag,
    Vary: 'Accept-Encoding',
  })
  if (reply.statusCode === 200 && names(request.headers['if-none-match'], file.etag)) return reply.code(304).send()
  if (!COMPRESSIBLE.test(file.type) || !/\bgzip\b/.test(String(request.headers['accept-encoding']))) {
    return reply.send(file.bytes)
  }
  file.zipped ??= compress(file.bytes, { level: 9 })
  return reply.header('Content-Encoding', 'gzip').send(await file.zipped)
}

/** Whether the header's list has the tag. Ours are strong, and a proxy that compresses may have made them weak. */
function names(ifNoneMatch: string | undefined, etag: string): boolean {
  return (ifNoneMatch ?? '').split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
