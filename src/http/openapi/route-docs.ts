/**
 * What a route tells about itself: the schema object that Fastify takes and the OpenAPI document is made from. Errors
 * that every call of the API can meet are added here once, so that no route can forget them.
 */
import type { FastifySchema } from 'fastify'
import { z } from 'zod'
import { ERRORS, type ErrorCode } from '../../domain/errors.ts'

/** When a caller meets each error, for the API reference. */
const ERROR_MEANINGS: Readonly<Record<ErrorCode, string>> = {
  invalid_request: 'The request is malformed or a field is wrong; `param` names it, `details` lists all that is wrong.',
  unsupported_api_revision:
    '`Api-Revision` is unknown, malformed or retired; `supported` lists the ones that are served.',
  file_unavailable: 'A file by URL could not be had when the run started; the message says which, and why.',
  unauthenticated: 'The API key is missing, mistyped, expired or revoked.',
  feature_disabled: 'Managed agents are switched off for the key’s account.',
  permission_denied:
    'The key’s scope, or the role of who is signed in, does not go so far; or the call came from another site.',
  budget_exceeded: 'The project has spent its budget for this month.',
  not_found: 'There is no such thing, or it is another project’s: the answers are the same.',
  method_not_allowed: 'The address exists, the method does not; `Allow` lists those that do.',
  conflict: 'The id is taken, or the state does not allow it.',
  precondition_failed: '`If-Match` is stale.',
  payload_too_large: 'The body or the files in it are too large.',
  unsupported_media_type: 'The body is not declared as `application/json`, or an upload as a zip or a form.',
  idempotency_mismatch: 'The `Idempotency-Key` was used with another body.',
  rate_limited:
    'Too many calls, or too much of the project in flight: answers not read, bodies being sent, streams open. Wait `Retry-After` seconds.',
  internal: 'A fault of the server. Try again after `Retry-After` seconds.',
  model_error: 'The model’s provider failed.',
  sandbox_unavailable: 'No sandbox is to be had now. Back off, or split large tasks.',
  unavailable: 'The server takes no work now: its queue is full, or it is closing. Back off.',
  deadline_exceeded: 'The run took longer than `policy.maxTurnDuration`. Raise it, split the work, or stream.',
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
    requestId: z.string().meta({ description: 'As in `X-Request-Id`. Name it when you ask the operator for help.' }),
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
