/**
 * Request bodies: read with a cap, and only when every check that needs no body has passed. JSON is bounded in depth
 * and in number of values before it is parsed, so that a small hostile body can't become a large object.
 */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ErrandError } from '../domain/errors.ts'

/** Objects, lists and their members in one body. The largest sensible request has some thousands. */
const MAX_VALUES = 20_000
/** What of an unread body is read and thrown away to keep the connection; above it, the connection is closed. */
const MAX_DRAINED_BYTES = 64 * 1024
/** How long a refused caller that is still sending may take to read the answer. */
const LINGER_MS = 1000

export interface BodyLimits {
  readonly bodyBytes: number
  readonly jsonDepth: number
}

/** Throws ErrandError `payload_too_large`, `invalid_request`. */
export async function readJson(
  request: IncomingMessage,
  response: ServerResponse,
  limits: BodyLimits,
): Promise<unknown> {
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
  return parseJson(await readBytes(request, limits.bodyBytes), limits.jsonDepth)
}

export function tooLarge(limit: number): ErrandError {
  return new ErrandError('payload_too_large', `The body has more than ${limit} bytes.`)
}

/** The declared length of the body in bytes; undefined where it comes in chunks of unknown number, 0 where there is none. */
export function declaredLength(request: IncomingMessage): number | undefined {
  if (request.headers['transfer-encoding'] !== undefined) return undefined
  return Number(request.headers['content-length'] ?? 0)
}

function isLong(request: IncomingMessage): boolean {
  return (declaredLength(request) ?? Number.POSITIVE_INFINITY) > MAX_DRAINED_BYTES
}

/**
 * Of a long body no more is read than what came with its headers, until somebody reads it. To be called as the request
 * arrives: Node drains what nobody asked for, and a read of nothing, before there is any of it, says that somebody did.
 */
export function holdBack(request: IncomingMessage): void {
  if (isLong(request)) request.read(0)
}

/**
 * For an answer to a request whose body was not read to its end. A short rest is left to Node, which drains it and keeps
 * the connection; with a longer one, which is held back, the connection ends, after the caller had time for the answer:
 * closing at once would reset it and take the answer away.
 */
export function leaveUnread(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || !isLong(request)) return
  const { socket } = request
  response.setHeader('Connection', 'close')
  socket.destroySoon = () => {
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}

function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let total = 0
  const onData = (chunk: Buffer) => {
    total += chunk.length
    chunks.push(chunk)
    if (total <= limit) return
    // Only paused: destroying the stream would destroy the socket, and with it the answer.
    release()
    request.pause()
    reject(tooLarge(limit))
  }
  const onEnd = () => {
    release()
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, total))
  }
  const onBroken = (cause?: Error) => {
    release()
    reject(new ErrandError('invalid_request', 'The body did not arrive whole.', { cause }))
  }
  const release = () => {
    request.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
  }
  request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
  if (request.destroyed) onBroken()
  return promise
}

/** Throws ErrandError `invalid_request`. */
export function parseJson(bytes: Buffer, maxDepth: number): unknown {
  if (bytes.length === 0) throw badJson('The body is empty; send a JSON object.')
  if (!isUtf8(bytes)) throw badJson('The body is not valid UTF-8.')
  boundJson(bytes, maxDepth)
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw badJson(`The body is not valid JSON: ${(error as Error).message.slice(0, 200)}.`)
  }
  refuseProto(value)
  return value
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN = new Set([0x5b, 0x7b])
const CLOSE = new Set([0x5d, 0x7d])

/** Counts depth and values without parsing; a string, however long, is skipped in one native search. */
function boundJson(bytes: Buffer, maxDepth: number): void {
  let depth = 0
  let values = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number
    if (byte === QUOTE) i = endOfString(bytes, i)
    else if (byte === COMMA) values++
    else if (OPEN.has(byte)) {
      values++
      if (++depth > maxDepth) throw badJson(`The body is nested deeper than ${maxDepth} levels.`)
    } else if (CLOSE.has(byte)) depth--
    if (values > MAX_VALUES) throw badJson(`The body has more than ${MAX_VALUES} values.`)
  }
}

/** The index of the quote that ends the string which begins at `start`; the end of the bytes where none does. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(QUOTE, start + 1); at !== -1; at = bytes.indexOf(QUOTE, at + 1)) {
    let backslashes = 0
    while (bytes[at - 1 - backslashes] === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return at
  }
  return bytes.length
}

/** `__proto__` as a name is never a field; what it is, is an attack on code that merges objects. */
function refuseProto(root: unknown): void {
  const open = [root]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    if (Object.hasOwn(value, '__proto__')) throw badJson('The body has a field named `__proto__`.')
    open.push(...Object.values(value))
  }
}

function badJson(message: string): ErrandError {
  return new ErrandError('invalid_request', message)
}
