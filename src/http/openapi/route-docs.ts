/**
 * Documentation of a route: the schema object for Fastify, from which the OpenAPI document is generated. The errors that every
 * call can return are added here, so that no route forgets one.
 */
import type { FastifySchema } from 'fastify'
import { z } from 'zod'
import { ERRORS, type ErrorCode } from '../../domain/errors.ts'

/** When each error occurs, for the API reference. */
const ERROR_MEANINGS: Readonly<Record<ErrorCode, string>> = {
  invalid_request:
    'The request is malformed or a field is wrong. `param` names the field, `details` lists all problems.',
  unsupported_api_revision: '`Api-Revision` is unknown, malformed or retired. `supported` lists the valid ones.',
  file_unavailable: 'A file by URL could not be fetched when the run started. The message says which file and why.',
  unauthenticated: 'The API key is missing, mistyped, expired or revoked.',
  feature_disabled: 'Managed agents are switched off for the key’s account.',
  permission_denied: 'The key’s scope or the user’s role does not allow the call, or the call came from another site.',
  budget_exceeded: 'The project has spent its budget for this month.',
  not_found: 'The resource does not exist, or belongs to another project.',
  method_not_allowed: 'The path does not support the method. `Allow` lists the supported methods.',
  conflict: 'The id is already used, or the resource’s state does not allow the call.',
  precondition_failed: 'The resource has changed: `If-Match` does not match its `etag`.',
  payload_too_large: 'The body or the files in it are too large.',
  unsupported_media_type: 'The `Content-Type` is not `application/json`, or for uploads neither a zip nor a form.',
  idempotency_mismatch: 'The `Idempotency-Key` was used with another body.',
  rate_limited:
    'Too many calls, or the project has too much in flight: unread responses, request bodies, open streams. Retry after `Retry-After` seconds.',
  internal: 'An internal server error. Retry after `Retry-After` seconds.',
  model_error: 'The model’s provider failed.',
  sandbox_unavailable: 'No sandbox is available. Retry with backoff, or split large tasks.',
  unavailable: 'The server accepts no work: its queue is full, or it is shutting down. Retry with backoff.',
  deadline_exceeded: 'The run took longer than `policy.maxTurnDuration`. Raise the limit or split the work.',
}

const problem = z
  .object({
    error: z.object({
      code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
      message: z.string().meta({ description: 'For people: what was wrong, and what to do.' }),
      status: z.int().meta({ description: 'The HTTP status.' }),
      param: z
        .string()
        .optional()
        .meta({ description: 'The field or parameter that is wrong.', examples: ['files[2].name'] }),
      details: z.unknown().optional().meta({ description: 'All that was found wrong: `[{param, message}]`.' }),
      retryable: z.boolean().meta({ description: 'Whether the same request may succeed later.' }),
      interactionId: z.string().optional().meta({ description: 'The interaction that this error ended.' }),
      supported: z.array(z.string()).optional().meta({ description: 'The revisions that are served.' }),
    }),
    requestId: z
      .string()
      .meta({ description: 'Same value as `X-Request-Id`. Include it when you ask the operator for help.' }),
  })
  .meta({
    title: 'Error',
    description: 'The one body of all errors.',
    examples: [
      {
        error: {
          code: 'invalid_request',
          message: '`instruction` is required.',
          status: 400,
          param: 'instruction',
          details: [{ param: 'instruction', message: '`instruction` is required.' }],
          retryable: false,
        },
        requestId: 'req_0Wb1xYz3kJ9mQ2pR5sT7uV',
      },
    ],
  })

export interface RouteDoc {
  /** The operation's id, for generated clients. */
  readonly id: string
  readonly tag: string
  readonly summary: string
  readonly description: string
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  readonly headers?: z.ZodType
  readonly body?: z.ZodType
  /** Media types that the body may have; `application/json` unless said otherwise. */
  readonly bodyTypes?: readonly string[]
  /** The JSON body of 200. */
  readonly answer?: z.ZodType
  /** The event stream of 200. */
  readonly events?: z.ZodType
  /** Another 200 than those: its media type and what it is. */
  readonly other?: readonly [mediaType: string, schema: z.ZodType]
  readonly errors?: readonly ErrorCode[]
}

const EVERY_CALL: readonly ErrorCode[] = [
  'invalid_request',
  'unsupported_api_revision',
  'unauthenticated',
  'feature_disabled',
  'permission_denied',
  'payload_too_large',
  'rate_limited',
  'internal',
  'unavailable',
]

/** A route that needs a key. */
export function keyed(doc: RouteDoc): FastifySchema {
  const media: ErrorCode[] = doc.body ? ['unsupported_media_type'] : []
  return describe(doc, [...EVERY_CALL, ...media, ...(doc.errors ?? [])], [{ apiKey: [] }])
}

/** A route of the console, for who is signed in. */
export function forSession(doc: RouteDoc): FastifySchema {
  const media: ErrorCode[] = doc.body ? ['unsupported_media_type'] : []
  const codes = EVERY_CALL.filter((code) => code !== 'unsupported_api_revision' && code !== 'feature_disabled')
  return describe(doc, [...codes, ...media, ...(doc.errors ?? [])], [{ session: [] }])
}

/** A route that needs none. */
export function open(doc: RouteDoc): FastifySchema {
  return describe(doc, ['invalid_request', 'payload_too_large', 'internal', ...(doc.errors ?? [])], [])
}

function describe(doc: RouteDoc, codes: readonly ErrorCode[], security: object[]): FastifySchema {
  const content: Record<string, { schema: z.ZodType }> = {}
  if (doc.answer) content['application/json'] = { schema: doc.answer }
  if (doc.events) content['text/event-stream'] = { schema: doc.events }
  if (doc.other) content[doc.other[0]] = { schema: doc.other[1] }
  const schema = {
    operationId: doc.id,
    tags: [doc.tag],
    summary: doc.summary,
    description: doc.description,
    security,
    ...(doc.params ? { params: doc.params } : {}),
    ...(doc.query ? { querystring: doc.query } : {}),
    ...(doc.headers ? { headers: doc.headers } : {}),
    ...(doc.body ? { body: doc.body, consumes: doc.bodyTypes ?? ['application/json'] } : {}),
    response: { 200: { description: 'Success.', content }, ...problems(codes) },
  }
  return schema as FastifySchema
}

/** One answer a status, which names the codes that come with it. */
function problems(codes: readonly ErrorCode[]): Record<number, object> {
  const meanings = new Map<number, string[]>()
  for (const code of new Set(codes)) {
    const { status } = ERRORS[code]
    meanings.set(status, [...(meanings.get(status) ?? []), `\`${code}\`: ${ERROR_MEANINGS[code]}`])
  }
  const answers: Record<number, object> = {}
  for (const [status, lines] of meanings) {
    answers[status] = { description: lines.join(' '), content: { 'application/json': { schema: problem } } }
  }
  return answers
}
