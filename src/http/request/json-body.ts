/**
 * Reads JSON bodies, after all checks that need no body. Size is limited while reading; depth and number of values are limited
 * before parsing, so that a small hostile body can't become a large object.
 */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { ErrandError } from '../../domain/errors.ts'

/** Maximum number of objects, lists and members in a body. The largest sensible request has a few thousand. */
const MAX_VALUES = 20_000
/** Maximum number of escaped characters in a body. Each costs the parser as much as several plain ones. */
const MAX_ESCAPES = 2_000_000
/** Maximum size of an unread body that is drained to keep the connection. For longer ones the connection is closed. */
const MAX_DRAINED_BYTES = 64 * 1024
/** Time for a refused caller that is still sending to read the response. */
const LINGER_MS = 1000

export interface BodyLimits {
  readonly bodyBytes: number
  readonly jsonDepth: number
}

/** `onBytes` gets the size of each chunk and may throw. Throws that error, or ErrandError `payload_too_large`, `invalid_request`. */
export async function readJson(
  request: IncomingMessage,
  response: ServerResponse,
  limits: BodyLimits,
  onBytes: (bytes: number) => void,
): Promise<unknown> {
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
  const onPiece = (bytes: number, total: number) => {
    if (total > limits.bodyBytes) throw tooLarge(limits.bodyBytes)
    onBytes(bytes)
  }
  return parseJson(await readBytes(request, onPiece), limits.jsonDepth)
}

export function tooLarge(limit: number): ErrandError {
  return new ErrandError('payload_too_large', `The body has more than ${limit} bytes.`)
}

/** Declared length of the body in bytes: undefined for a chunked body, 0 without a body. */
export function declaredLength(request: IncomingMessage): number | undefined {
  if (request.headers['transfer-encoding'] !== undefined) return undefined
  return Number(request.headers['content-length'] ?? 0)
}

function isLong(request: IncomingMessage): boolean {
  return (declaredLength(request) ?? Number.POSITIVE_INFINITY) > MAX_DRAINED_BYTES
}

/**
 * Stops Node from reading a long body until a route reads it. Must be called when the request arrives: Node drains bodies that
 * have no reader, and reading 0 bytes before any have arrived makes it wait for one.
 */
export function holdBack(request: IncomingMessage): void {
  if (isLong(request)) request.read(0)
}

/**
 * Handles a body that was not read to its end. Node drains a short one and keeps the connection. For a long one, this closes
 * the connection after a delay: closing at once would reset it, and the caller would lose the response.
 */
export function leaveUnread(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || !isLong(request)) return
  const { socket } = request
  response.setHeader('Connection', 'close')
  socket.destroySoon = () => {
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}

function readBytes(request: IncomingMessage, onPiece: (bytes: number, total: number) => void): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let total = 0
  const onData = (chunk: Buffer) => {
    total += chunk.length
    try {
      onPiece(chunk.length, total)
      chunks.push(chunk)
    } catch (refusal) {
      // Paused, not destroyed: destroying the stream would destroy the socket before the response is sent.
      release()
      request.pause()
      reject(refusal)
    }
  }
  const onEnd = () => {
    release()
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, total))
  }
  const onBroken = (cause?: Error) => {
    release()
    reject(new ErrandError('invalid_request', 'The body is incomplete: the connection ended early.', { cause }))
  }
  const release = () => {
    request.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
  }
  request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
  if (request.destroyed) onBroken()
  return promise
}

/** Throws ErrandError `invalid_request`. */
export async function parseJson(bytes: Buffer, maxDepth: number): Promise<unknown> {
  if (bytes.length === 0) throw badJson('The body is empty; send a JSON object.')
  if (!isUtf8(bytes)) throw badJson('The body is not valid UTF-8.')
  await boundJson(bytes, maxDepth)
  const text = bytes.toString('utf8')
  const isLarge = bytes.length > SLICE_BYTES
  if (isLarge) await yieldToOthers()
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw badJson(`The body is not valid JSON: ${(error as Error).message.slice(0, 200)}.`)
  }
  if (isLarge) await yieldToOthers()
  refuseProto(value)
  return value
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const OPEN_OBJECT = 0x7b
const CLOSE_LIST = 0x5d
const CLOSE_OBJECT = 0x7d
/** Number of bytes that are scanned in one turn of the event loop: a few milliseconds. */
const SLICE_BYTES = 1024 * 1024
/** After this many plain bytes in a string, a native search skips to its end. */
const PLAIN_BYTES = 256

/** Checks depth and number of values without parsing. Yields to the event loop. */
async function boundJson(bytes: Buffer, maxDepth: number): Promise<void> {
  const bounds = createBounds(maxDepth)
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (at > 0) await yieldToOthers()
    bounds(bytes.subarray(at, at + SLICE_BYTES))
  }
}

function createBounds(maxDepth: number): (piece: Buffer) => void {
  let depth = 0
  let values = 0
  let escapes = 0
  let inString = false
  let escaped = false
  return (piece) => {
    const nextQuote = nextOf(piece, QUOTE)
    const nextBackslash = nextOf(piece, BACKSLASH)
    let plain = 0
    for (let i = 0; i < piece.length; i++) {
      const byte = piece[i]!
      if (inString) {
        plain++
        if (escaped) escaped = false
        else if (byte === BACKSLASH) [escaped, plain, escapes] = [true, 0, escapes + 1]
        else if (byte === QUOTE) [inString, plain] = [false, 0]
        else if (plain === PLAIN_BYTES) [i, plain] = [Math.min(nextQuote(i), nextBackslash(i)) - 1, 0]
      } else if (byte === QUOTE) inString = true
      else if (byte === COMMA) values++
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        values++
        if (++depth > maxDepth) throw badJson(`The body is nested deeper than ${maxDepth} levels.`)
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
      if (escapes > MAX_ESCAPES)
        throw badJson(`The body has more than ${MAX_ESCAPES} escaped characters; send such a file in base64.`)
      if (values > MAX_VALUES) throw badJson(`The body has more than ${MAX_VALUES} values.`)
    }
  }
}

/** Finds the next occurrence of a byte, or the end. `from` must only grow: no byte is searched twice. */
function nextOf(piece: Buffer, byte: number): (from: number) => number {
  let known = -1
  return (from) => {
    if (known < from) {
      const found = piece.indexOf(byte, from)
      known = found < 0 ? piece.length : found
    }
    return known
  }
}

/** Refuses `__proto__` as a field name: it is an attack on code that merges objects. */
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
