/** The interactions API: starts, streams, reads, lists, cancels and deletes runs. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Edge } from '../edge.ts'
import { refundCreation } from '../gate/gate.ts'
import { keyed } from '../openapi/route-docs.ts'
import { wrongField } from '../request/fields.ts'
import { fingerprintOf } from '../request/fingerprint.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { parsePrefer } from '../request/preferences.ts'
import { filterText, headers, idParam, labelFilters, list, pageSizeOf, view } from '../request/queries.ts'
import {
  answerAtEnd,
  answerNow,
  formOf,
  INTERACTIONS,
  noInteraction,
  runHeaders,
  streamRun,
} from '../response/respond.ts'
import { checkModel } from '../validate-config.ts'
import { INTERACTION_TEXTS as TEXTS } from './interaction-texts.ts'

const ID = ':id(^[A-Za-z0-9_-]+)'

const viewQuery = z.object({ view })
const streamQuery = z.object({
  view,
  lastEventId: z.string().optional().meta({ description: 'The same as the header `Last-Event-ID`.' }),
})
const time = z.iso
  .datetime({ offset: true, error: 'must be an RFC 3339 time, such as 2026-05-20T09:30:00Z' })
  .optional()
const listQuery = z.looseObject({
  ...list,
  view,
  agentId: filterText.optional().meta({ description: 'Only interactions of this agent.' }),
  status: z
    .enum(['running', 'completed', 'failed', 'cancelled'])
    .optional()
    .meta({ description: 'Only interactions with this status.' }),
  model: filterText.optional().meta({ description: 'Only interactions that requested this model.' }),
  keyId: filterText.optional().meta({ description: 'Only interactions that this API key started.' }),
  createdAfter: time.meta({ description: 'Only interactions created at this time or later. RFC 3339.' }),
  createdBefore: time.meta({ description: 'Only interactions created before this time. RFC 3339.' }),
})

type ById = { Params: z.infer<typeof idParam> }
type Viewed = { Querystring: z.infer<typeof viewQuery> }

export function interactionRoutes(app: FastifyInstance, edge: Edge): void {
  creationRoutes(app, edge)
  readingRoutes(app, edge)
  for (const [verb, path] of Object.entries({ stream: `${ID}::stream`, streamBySlash: `${ID}/stream` })) {
    streamRoute(app, edge, verb, `${INTERACTIONS}/${path}`)
  }
  for (const [verb, path] of Object.entries({ cancel: `${ID}::cancel`, cancelBySlash: `${ID}/cancel` })) {
    cancelRoute(app, edge, verb, `${INTERACTIONS}/${path}`)
  }
}

function creationRoutes(app: FastifyInstance, edge: Edge): void {
  const { schemas } = edge.documented
  const shared = {
    tag: 'Interactions',
    headers: z.object({ ...headers.revision, ...headers.prefer, ...headers.idempotencyKey }),
    query: viewQuery,
    body: schemas.newInteraction,
    errors: ['not_found', 'conflict', 'idempotency_mismatch', 'unavailable'],
  } as const

  app.post<Viewed>(
    INTERACTIONS,
    {
      config: { json: true, creates: true, scopes: ['invoke'] },
      schema: keyed({
        ...shared,
        ...TEXTS.create,
        answer: schemas.interaction,
        events: schemas.eventStream,
        errors: [...shared.errors, 'file_unavailable', 'model_error', 'sandbox_unavailable', 'deadline_exceeded'],
      }),
    },
    (request, reply) => create(edge, request, reply, false),
  )

  app.post<Viewed>(
    `${INTERACTIONS}::stream`,
    {
      config: { json: true, creates: true, scopes: ['invoke'] },
      schema: keyed({ ...shared, ...TEXTS.createStream, events: schemas.eventStream }),
    },
    (request, reply) => create(edge, request, reply, true),
  )
}

/** Starts a run, and answers as the caller prefers: with a stream, immediately, or when the run ends. */
async function create(edge: Edge, request: FastifyRequest<Viewed>, reply: FastifyReply, streamPath: boolean) {
  const { caller, codec, query } = request
  const preferences = parsePrefer(request.headers.prefer)
  const key = idempotencyKey(request.headers['idempotency-key'])
  const { run: sent, stream, background } = codec.interactions.decodeNew(request.body)
  const run = { ...sent, warnings: [...request.ignored, ...sent.warnings] }
  checkModel(edge.catalogue, run.settings.model)
  const streams = streamPath || stream
  const waitS = background ? 0 : preferences.waitS
  // Checked before the run is accepted: a refused request must not start a run.
  if (streams || waitS !== 0) request.share?.take('streams', 1)
  const { interactionId, joined, begun } = await edge.engine.submit(caller.projectId, run, {
    idempotency: key === undefined ? undefined : { key, fingerprint: await fingerprintOf(request.body) },
    strict: preferences.strict,
    keyId: caller.keyId,
    traceparent: request.traceparent,
  })
  if (joined) await refundCreation(edge.rateLimits, request, reply)
  request.counted = true
  request.interactionId = interactionId
  request.body = undefined // Frees memory: the caller may wait for hours.
  request.share?.release('uploadBytes')
  reply.headers(runHeaders(interactionId))
  if (joined) reply.header('Idempotent-Replayed', 'true')

  const form = formOf(query.view, preferences)
  const asked = { interactionId, form, preferences, cancelOnLeave: run.onDisconnect === 'cancel' }
  if (streams) return streamRun(edge, request, reply, { ...asked, after: 0, known: begun })
  return waitS === 0 ? answerNow(edge, request, reply, asked) : answerAtEnd(edge, request, reply, { ...asked, waitS })
}

function readingRoutes(app: FastifyInstance, edge: Edge): void {
  const { engine } = edge
  const { schemas } = edge.documented

  app.get<{ Querystring: z.infer<typeof listQuery> }>(
    INTERACTIONS,
    {
      schema: keyed({
        ...TEXTS.list,
        tag: 'Interactions',
        headers: z.object({ ...headers.revision, ...headers.minimal }),
        query: listQuery,
        answer: schemas.interactionList,
      }),
    },
    async (request) => {
      const { agentId, model, status, keyId, createdAfter, createdBefore, order = 'desc', pageToken } = request.query
      const times = { createdAfter: millis(createdAfter), createdBefore: millis(createdBefore) }
      const filters = { labels: labelFilters(request.query), agentId, model, status, keyId, ...times, order }
      const identity = { path: INTERACTIONS, ...filters }
      const { interactions, next } = await engine.list(request.caller.projectId, {
        ...filters,
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, pageToken),
      })
      const form = formOf(request.query.view, parsePrefer(request.headers.prefer))
      return request.codec.interactions.encodeList(interactions, form, writePageToken(identity, next))
    },
  )

  app.get<ById & Viewed>(
    `${INTERACTIONS}/${ID}`,
    {
      config: { scopes: ['read', 'invoke'] },
      schema: keyed({
        ...TEXTS.get,
        tag: 'Interactions',
        headers: z.object({ ...headers.revision, ...headers.minimal }),
        params: idParam,
        query: viewQuery,
        answer: schemas.interaction,
        errors: ['not_found'],
      }),
    },
    (request, reply) => {
      const preferences = parsePrefer(request.headers.prefer)
      return answerNow(edge, request, reply, {
        interactionId: request.params.id,
        form: formOf(request.query.view, preferences),
        preferences,
      })
    },
  )

  app.delete<ById>(
    `${INTERACTIONS}/${ID}`,
    {
      schema: keyed({
        ...TEXTS.remove,
        tag: 'Interactions',
        headers: z.object(headers.revision),
        params: idParam,
        answer: z.object({}),
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      await engine.remove(request.caller.projectId, request.params.id, request.caller.keyId)
      return {}
    },
  )
}

function streamRoute(app: FastifyInstance, edge: Edge, text: string, url: string): void {
  app.get<ById & { Querystring: z.infer<typeof streamQuery> }>(
    url,
    {
      config: { scopes: ['read', 'invoke'] },
      schema: keyed({
        ...TEXTS[text as 'stream'],
        tag: 'Interactions',
        headers: z.object({ ...headers.revision, ...headers.minimal, ...headers.lastEventId }),
        params: idParam,
        query: streamQuery,
        events: edge.documented.schemas.eventStream,
        errors: ['not_found'],
      }),
    },
    async (request, reply) => {
      const interactionId = request.params.id
      const preferences = parsePrefer(request.headers.prefer)
      const after = lastEventId(request)
      request.share?.take('streams', 1)
      const found = await edge.engine.find(request.caller.projectId, interactionId)
      if (!found) throw noInteraction(interactionId)
      if (after > found.lastSeq) {
        throw wrongField(lastEventIdParam(request), `is ${after}, but the newest event is ${found.lastSeq}`)
      }
      reply.headers(runHeaders(interactionId))
      const form = formOf(request.query.view, preferences)
      return streamRun(edge, request, reply, { interactionId, form, preferences, after, cancelOnLeave: false })
    },
  )
}

function cancelRoute(app: FastifyInstance, edge: Edge, text: string, url: string): void {
  app.post<ById & Viewed>(
    url,
    {
      config: { scopes: ['invoke'] },
      schema: keyed({
        ...TEXTS[text as 'cancel'],
        tag: 'Interactions',
        headers: z.object({ ...headers.revision, ...headers.minimal }),
        params: idParam,
        query: viewQuery,
        answer: edge.documented.schemas.interaction,
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request, reply) => {
      const interactionId = request.params.id
      const preferences = parsePrefer(request.headers.prefer)
      await edge.engine.cancel(request.caller.projectId, interactionId)
      const form = formOf(request.query.view, preferences)
      return answerNow(edge, request, reply, { interactionId, form, preferences })
    },
  )
}

function millis(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time)
}

type Resuming = FastifyRequest<{ Querystring: z.infer<typeof streamQuery> }>

/** The header overrides the query: a browser that reconnects sends both, and only the header is current. */
function lastEventIdParam(request: Resuming): string {
  return request.headers['last-event-id'] ? 'Last-Event-ID' : 'lastEventId'
}

function lastEventId(request: Resuming): number {
  const text = request.headers['last-event-id'] || request.query.lastEventId || '0'
  if (typeof text === 'string' && /^\d{1,15}$/.test(text)) return Number(text)
  throw wrongField(lastEventIdParam(request), 'must be the number of an event')
}

function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw wrongField('Idempotency-Key', 'must be 1 to 255 visible ASCII characters')
}
