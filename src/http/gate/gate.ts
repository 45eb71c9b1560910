/**
 * Checks that need no body, in this order: key (401), account switch and scope (403), rate limit and in-flight limit (429),
 * revision (400), path (404, 405), media type (415), declared size (413). The body is read and checked after these.
 *
 * Instead of sending a key, a signed-in user of the console may name one of their projects (session.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Accounts, Caller } from '../../accounts/accounts.ts'
import type { Visitor } from '../../accounts/sign-in.ts'
import { ErrandError } from '../../domain/errors.ts'
import type { Limits } from '../../domain/limits.ts'
import type { Addresses, Refusal } from '../methods.ts'
import { declaredLength, tooLarge } from '../request/json-body.ts'
import { pathOf } from '../request/path.ts'
import { UPLOAD_TYPES } from '../request/upload-body.ts'
import type { Codec } from '../wire/codec.ts'
import type { InFlight, Share } from './in-flight.ts'
import type { Quota, RateLimits } from './rate-limits.ts'
import type { RouteAccess } from './route-access.ts'
import { CONSOLE_HEADER, PROJECT_HEADER, type Sessions } from './session.ts'

declare module 'fastify' {
  interface FastifyContextConfig extends RouteAccess {}
  interface FastifyRequest {
    /** Set on every route of the API that is not open. */
    caller: Caller
    /** Set on the console's routes that need a session. */
    visitor: Visitor
    codec: Codec
    quota: Quota | undefined
    /** The request's share of what its project or visitor has in flight. Undefined on open routes. */
    share: Share | undefined
    /** The interaction that the request created. */
    interactionId: string | undefined
    /** Set if the path exists but does not support the method. */
    refusal: Refusal | undefined
    /** W3C trace context of the request's span. Undefined if it is not traced. */
    traceparent: string | undefined
    /** The count of this creation is final: something was created, or the count was refunded. */
    counted: boolean
  }
}

export interface GateParts {
  readonly accounts: Accounts
  readonly sessions: Sessions
  readonly rateLimits: RateLimits
  /** Newest last. */
  readonly codecs: readonly Codec[]
  readonly limits: Pick<Limits, 'bodyBytes' | 'skillBytes'>
  readonly addresses: Pick<Addresses, 'refusal'>
  readonly inFlight: InFlight
}

const KEY_HEADER = 'x-svc-api-key'
/** Maximum size of a body on a route that ignores it. */
const USELESS_BODY_BYTES = 64 * 1024

export type Gate = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** Resolves when the request may go on; throws ErrandError otherwise. */
export function createGate(parts: GateParts): Gate {
  return async function gate(request, reply) {
    reply.headers({ 'X-Request-Id': request.id, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' })
    if (request.is404) request.refusal = parts.addresses.refusal(request.url)
    const access: RouteAccess = request.refusal ?? request.routeOptions.config ?? {}
    if (access.console) {
      if (!request.refusal) await admitToConsole(parts, request, reply, access)
    } else if (isNowhere(request) ? isKeyed(request.url) : !access.open) {
      request.caller = await identify(parts, request)
      checkScope(request, access)
      await count(parts.rateLimits, request, reply, request.caller.projectId, access)
      openShare(parts.inFlight, request, reply, request.caller.projectId)
      request.codec = chooseCodec(parts.codecs, request)
      reply.header('Api-Revision', request.codec.revision)
    }
    checkAddress(request, reply)
    checkMediaType(request, access)
    checkDeclaredSize(request, access, parts.limits)
  }
}

/** If the request created nothing, counts it as a call instead of a creation. */
export async function refundCreation(
  rateLimits: RateLimits,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (request.counted || !request.quota?.admitted || request.quota.class !== 'interactions') return
  request.counted = true
  request.quota = await rateLimits.refund(request.caller.projectId, request.quota)
  reply.headers(rateLimits.headers(request.quota))
}

function isNowhere({ is404, refusal }: FastifyRequest): boolean {
  return is404 && refusal === undefined
}

/** Whether an unknown path is below the API, where only callers with a key learn that it is unknown. */
function isKeyed(url: string): boolean {
  return /^\/v1beta(?:\/|$)/.test(pathOf(url))
}

async function admitToConsole(parts: GateParts, request: FastifyRequest, reply: FastifyReply, access: RouteAccess) {
  parts.sessions.checkSite(request, CONSOLE_HEADER)
  if (access.console === 'open') return
  request.visitor = await parts.sessions.visitor(request)
  await count(parts.rateLimits, request, reply, request.visitor.userId, access)
  openShare(parts.inFlight, request, reply, request.visitor.userId)
}

/** Opens the request's in-flight share until its connection closes. Throws ErrandError `rate_limited` if the owner is over a limit. */
export function openShare(inFlight: InFlight, request: FastifyRequest, reply: FastifyReply, owner: string): void {
  const share = inFlight.open(owner)
  request.share = share
  reply.raw.once('close', () => share.release())
  share.take('responseBytes', 0)
}

async function count(
  rateLimits: RateLimits,
  request: FastifyRequest,
  reply: FastifyReply,
  whose: string,
  { creates }: RouteAccess,
): Promise<void> {
  request.quota = await rateLimits.admit(whose, creates ? 'interactions' : 'calls')
  reply.headers(rateLimits.headers(request.quota))
  if (!request.quota.admitted) throw tooOften(request.quota, rateLimits)
}

async function identify({ accounts, sessions }: GateParts, request: FastifyRequest): Promise<Caller> {
  const key = request.headers[KEY_HEADER]
  if (key === undefined && request.headers[PROJECT_HEADER] !== undefined) return enabled(await sessions.caller(request))
  if (typeof key !== 'string' || key === '') {
    throw new ErrandError('unauthenticated', `There is no API key: send it in the header ${KEY_HEADER}.`)
  }
  const caller = await accounts.authenticate(key)
  if (!caller) {
    throw new ErrandError(
      'unauthenticated',
      'The API key is not valid: it may be mistyped, expired or revoked. Issue a new one.',
    )
  }
  return enabled(caller)
}

function enabled(caller: Caller): Caller {
  if (caller.enabled) return caller
  throw new ErrandError(
    'feature_disabled',
    'Managed agents are switched off for this account. An owner of it can switch them on in the experimental settings.',
  )
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Checks the key's scope. Skips unknown paths and methods, which are 404 and 405 whatever the scope. */
function checkScope(request: FastifyRequest, { scopes }: RouteAccess): void {
  const { scope } = request.caller
  if (scope === 'all' || request.is404) return
  if ((scopes ?? (SAFE.has(request.method) ? ['read'] : [])).includes(scope)) return
  throw new ErrandError(
    'permission_denied',
    `This needs more than the scope \`${scope}\`${request.headers[KEY_HEADER] === undefined ? ', which is what your role in the account gives' : ' of the key'}.`,
  )
}

function tooOften(quota: Quota, rateLimits: RateLimits): ErrandError {
  const seconds = rateLimits.secondsLeft(quota)
  const what = quota.class === 'interactions' ? 'new interactions' : 'calls'
  return new ErrandError(
    'rate_limited',
    `This project has used its ${quota.limit} ${what} a minute. Try again in ${seconds} s.`,
    { retryAfterS: seconds },
  )
}

function chooseCodec(codecs: readonly Codec[], request: FastifyRequest): Codec {
  const asked = request.headers['api-revision']
  const codec = asked === undefined ? codecs.at(-1) : codecs.find(({ revision }) => revision === asked)
  if (codec) return codec
  const supported = codecs.map(({ revision }) => revision)
  throw new ErrandError(
    'unsupported_api_revision',
    `The revision ${JSON.stringify(String(asked).slice(0, 40))} is not served here. Served: ${supported.join(', ')}.`,
    { param: 'Api-Revision', supported },
  )
}

function checkAddress(request: FastifyRequest, reply: FastifyReply): void {
  if (isNowhere(request))
    throw new ErrandError('not_found', `There is nothing under ${pathOf(request.url).slice(0, 200)}.`)
  if (request.raw.httpVersion === '1.1' && request.headers.host === undefined) {
    throw new ErrandError('invalid_request', 'The Host header is missing.')
  }
  if (!request.refusal) return
  const { allow } = request.refusal
  reply.header('Allow', allow)
  throw new ErrandError('method_not_allowed', `${request.method} is not allowed on this path. Allowed: ${allow}.`)
}

function checkMediaType(request: FastifyRequest, { json, upload }: RouteAccess): void {
  if ((!json && !upload) || (json === 'optional' && declaredLength(request.raw) === 0)) {
    // On these routes the header means nothing, but Fastify would refuse a type that it can't parse.
    delete request.raw.headers['content-type']
    return
  }
  const [type, ...parameters] = (request.headers['content-type'] ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new ErrandError('unsupported_media_type', 'Send the body as it is, without a Content-Encoding.')
  }
  if (upload) {
    if (UPLOAD_TYPES.some((each) => each === type)) return
    throw new ErrandError(
      'unsupported_media_type',
      'Send the zip with Content-Type: application/zip, or as the field `file` of a multipart/form-data body.',
    )
  }
  const known = type === 'application/json' || (type === 'application/merge-patch+json' && request.method === 'PATCH')
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length)
  if (known && (charset === undefined || /^"?utf-?8"?$/.test(charset))) return
  throw new ErrandError('unsupported_media_type', 'Send the body as JSON, with Content-Type: application/json.')
}

function checkDeclaredSize(
  request: FastifyRequest,
  { json, upload }: RouteAccess,
  { bodyBytes, skillBytes }: GateParts['limits'],
): void {
  const limit = json ? bodyBytes : upload ? skillBytes : USELESS_BODY_BYTES
  if ((declaredLength(request.raw) ?? 0) > limit) throw tooLarge(limit)
}
