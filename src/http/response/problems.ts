/**
 * Error responses. All errors have the same body. Causes, stacks and addresses go only to the log.
 */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { BlobsUnavailable } from '../../blobs/port.ts'
import { ErrandError, type ErrorCode } from '../../domain/errors.ts'
import { newId } from '../../domain/ids.ts'
import { DatabaseUnavailable } from '../../store/port.ts'
import { routeOf } from '../request/route.ts'

export interface ProblemBody {
  readonly error: {
    readonly code: ErrorCode
    readonly message: string
    readonly status: number
    readonly param?: string
    readonly details?: unknown
    readonly retryable: boolean
    readonly interactionId?: string
    readonly supported?: readonly string[]
  }
  readonly requestId: string
}

function problemBody(error: ErrandError, requestId: string): ProblemBody {
  const { param, details, interactionId, supported } = error.extras
  return {
    error: {
      code: error.code,
      message: error.message,
      status: error.status,
      param,
      details,
      retryable: error.retryable,
      interactionId,
      supported,
    },
    requestId,
  }
}

/** The error handler of all routes. */
export function answerProblem(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = toErrandError(thrown)
  // An error that was not thrown on purpose is a bug or an outage: its stack belongs in the log.
  const unexpected = !(thrown instanceof ErrandError) && error.status >= 500
  const level = unexpected ? 'error' : error.status >= 500 ? 'info' : 'debug'
  // The message is not logged: it may quote what the caller sent.
  request.log[level](
    {
      ...((unexpected || error.cause !== undefined) && { err: thrown }),
      code: error.code,
      method: request.method,
      route: routeOf(request),
    },
    'refused',
  )
  if (error.retryAfterS !== undefined) reply.header('Retry-After', String(error.retryAfterS))
  if (error.status === 401) reply.header('WWW-Authenticate', 'ApiKey realm="errand"')
  return reply.code(error.status).type('application/json').send(problemBody(error, request.id))
}

function toErrandError(thrown: unknown): ErrandError {
  if (thrown instanceof ErrandError) return thrown
  if (thrown instanceof DatabaseUnavailable || thrown instanceof BlobsUnavailable) {
    return new ErrandError('unavailable', 'The server can’t store anything at the moment. Try again later.', {
      cause: thrown,
    })
  }
  const { code, statusCode } = (thrown ?? {}) as Partial<FastifyError>
  if (statusCode === 413) return new ErrandError('payload_too_large', 'The body is too large.')
  if (statusCode === 415) return new ErrandError('unsupported_media_type', 'Content-Type is not a media type.')
  if (code?.startsWith('FST_ERR_') && statusCode !== undefined && statusCode < 500) {
    return new ErrandError('invalid_request', 'The request is not valid.', { cause: thrown })
  }
  return new ErrandError(
    'internal',
    'Something went wrong on the server; it has been logged under the id of this request.',
    {
      cause: thrown,
    },
  )
}

const NOT_HTTP: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'The request timed out before it was complete.',
  HPE_HEADER_OVERFLOW: 'The headers of the request are too large.',
}

/**
 * Answers what never became a request: invalid HTTP, too large headers, a slow sender. A connection without any byte gets no
 * answer: browsers open connections in advance, and would take it as the answer to their next request.
 */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
    socket.destroy()
    return
  }
  const requestId = newId('req')
  const problem = new ErrandError('invalid_request', NOT_HTTP[error.code ?? ''] ?? 'This is not a valid HTTP request.')
  const body = JSON.stringify(problemBody(problem, requestId))
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
