/**
 * The HTTP server. A request passes the gate (gate.ts), its body is read (json-body.ts), its route decodes it with the
 * revision's codec, calls the engine or the store, and encodes the response. problems.ts answers all errors.
 */
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyReply } from 'fastify'
import type { Accounts } from '../accounts/accounts.ts'
import type { Config } from '../config.ts'
import { logWith } from '../telemetry/log.ts'
import type { Traces } from '../telemetry/traces.ts'
import { accountRoutes } from './console-api/account-routes.ts'
import { budgetRoutes } from './console-api/budget-routes.ts'
import type { ConsoleDependencies } from './console-api/dependencies.ts'
import { keyRoutes } from './console-api/key-routes.ts'
import { linkRoutes } from './console-api/link-routes.ts'
import { inviteRoutes, memberRoutes } from './console-api/member-routes.ts'
import { projectRoutes } from './console-api/project-routes.ts'
import { sessionRoutes } from './console-api/session-routes.ts'
import { signInRoutes } from './console-api/sign-in-routes.ts'
import { usageRoutes } from './console-api/usage-routes.ts'
import type { Edge } from './edge.ts'
import { createGate, refundCreation } from './gate/gate.ts'
import { createInFlight, type Share } from './gate/in-flight.ts'
import { createReaders, inPieces, PIECE_BYTES } from './gate/readers.ts'
import { createSessions } from './gate/session.ts'
import { createAddresses } from './methods.ts'
import { registerOpenApi } from './openapi/openapi.ts'
import { declaredLength, holdBack, leaveUnread, readJson } from './request/json-body.ts'
import { routeOf } from './request/route.ts'
import { warnOfUnknownParameters } from './request/unknown-parameters.ts'
import { answerProblem } from './response/problems.ts'
import { agentRoutes } from './routes/agents.ts'
import { approvalRoutes } from './routes/approvals.ts'
import { auditRoutes } from './routes/audit.ts'
import { consoleRoutes } from './routes/console.ts'
import { credentialRoutes } from './routes/credentials.ts'
import { docsRoutes } from './routes/docs.ts'
import { eventLogRoutes } from './routes/event-log.ts'
import { fileRoutes } from './routes/files.ts'
import { healthRoutes } from './routes/health.ts'
import { interactionRoutes } from './routes/interactions.ts'
import { type Exposition, metricsRoutes } from './routes/metrics.ts'
import { serverRoutes } from './routes/server.ts'
import { skillRoutes } from './routes/skills.ts'
import { deliveryRoutes } from './routes/webhook-deliveries.ts'
import { continueLate, serverOptions } from './server-options.ts'
import { createRevision20260520 } from './wire/2026-05-20/codec.ts'
import type { Codec } from './wire/codec.ts'

export interface AppDeps
  extends Pick<
    Edge,
    | 'engine'
    | 'agents'
    | 'credentials'
    | 'skills'
    | 'blobs'
    | 'catalogue'
    | 'signer'
    | 'rateLimits'
    | 'facts'
    | 'workers'
    | 'emit'
  > {
  readonly config: Config
  readonly accounts: Accounts
  readonly console: ConsoleDependencies
  readonly log: FastifyBaseLogger
  /** Begins the trace of a request. Undefined if tracing is off. */
  readonly trace?: Traces['begin'] | undefined
  /** Served at /metrics if the configuration has a metrics key. */
  readonly metrics?: Exposition
  /** The revisions to serve. Callers that name none get the newest. */
  readonly revisions?: readonly Codec[]
}

/** Time for responses to finish when the server closes. */
const CLOSE_GRACE_MS = 1_000

/** Server that is ready to listen. A worker serves only health checks and metrics. Closing it ends streams and answers waiting callers, but does not close the engine. */
export async function createApp(deps: AppDeps): Promise<FastifyInstance> {
  const { limits } = deps.config
  const codecs = [...(deps.revisions ?? [createRevision20260520(limits)])].sort((a, b) =>
    a.revision < b.revision ? -1 : 1,
  )
  const closing = new AbortController()
  const mcpServers = new Set(Object.keys(deps.config.mcp))
  const [inFlight, readers] = [createInFlight(limits), createReaders()]
  const documented = codecs.at(-1) as Codec
  const edge: Edge = { ...deps, limits, mcpServers, documented, inFlight, readers, closing: closing.signal }
  const { console } = deps
  const sessions = createSessions(
    { signIn: console.signIn, members: console.accounts.members },
    () => deps.config.publicUrl,
  )
  const addresses = createAddresses()
  const gate = createGate({ ...deps, sessions, codecs, limits, addresses, inFlight })

  const app: FastifyInstance = Fastify(serverOptions(deps.config, deps.log, gate))
  continueLate(app.server)
  decorateRequests(app)
  app.setErrorHandler(answerProblem)
  readBodies(app, edge)

  app.addHook('onRequest', ({ raw }, _reply, done) => {
    holdBack(raw)
    done()
  })
  logCalls(app, deps)
  app.addHook('onRequest', gate)
  app.addHook('onRequest', (request, reply, done) => {
    warnOfUnknownParameters(request, reply)
    done()
  })
  app.addHook('onSend', async (request, reply, payload) => {
    await refundCreation(deps.rateLimits, request, reply)
    const body = countBody(request.share, reply, payload)
    leaveUnread(request.raw, reply.raw)
    readers.watch(reply.raw)
    return body
  })
  app.addHook('preClose', async () => {
    closing.abort()
    readers.close()
    // Node waits for connections that never sent a request, as browsers open them in advance: those have no claim on us.
    setTimeout(() => app.server.closeAllConnections(), CLOSE_GRACE_MS).unref()
  })

  const { role, metrics } = deps.config
  if (role === 'worker') {
    healthRoutes(app, edge)
    metricsRoutes(app, deps.metrics, metrics.key)
    return app
  }
  await registerOpenApi(app, edge.documented.schemas)
  addresses.learn(app)
  agentRoutes(app, edge)
  interactionRoutes(app, edge)
  approvalRoutes(app, edge)
  auditRoutes(app, edge)
  eventLogRoutes(app, edge)
  credentialRoutes(app, edge)
  skillRoutes(app, edge)
  deliveryRoutes(app, edge)
  fileRoutes(app, edge)
  serverRoutes(app, edge)
  healthRoutes(app, edge)
  docsRoutes(app, deps.config, console.publicUrl)
  consoleRoutes(app)
  signInRoutes(app, console)
  linkRoutes(app, console)
  sessionRoutes(app, console)
  accountRoutes(app, console)
  memberRoutes(app, console)
  inviteRoutes(app, console)
  keyRoutes(app, console)
  usageRoutes(app, console)
  projectRoutes(app, console)
  budgetRoutes(app, console)
  metricsRoutes(app, deps.metrics, metrics.key)
  return app
}

/** Declares all request fields up front, so that all requests have one shape. The gate sets them. */
function decorateRequests(app: FastifyInstance): void {
  for (const name of [
    'caller',
    'visitor',
    'codec',
    'quota',
    'share',
    'interactionId',
    'refusal',
    'traceparent',
    'ignored',
  ])
    app.decorateRequest(name)
  app.decorateRequest('counted', false)
}

/** Counts a body among its project's answers in flight, instead of what was counted while it was made. Errors are not counted. */
function countBody(share: Share | undefined, reply: FastifyReply, payload: unknown): unknown {
  share?.leave()
  if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload
  const bytes = Buffer.byteLength(payload)
  share?.set('responseBytes', reply.statusCode < 400 ? bytes : 0)
  if (bytes <= PIECE_BYTES) return payload
  reply.header('Content-Length', String(bytes))
  return inPieces(typeof payload === 'string' ? Buffer.from(payload) : payload)
}

/** Fastify's own parsing is passed over: a body is read on the routes that take one, after everything before it. */
function readBodies(app: FastifyInstance, { limits }: Edge): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('preValidation', async (request, reply) => {
    const { json } = request.routeOptions.config
    if (!json || (json === 'optional' && declaredLength(request.raw) === 0)) return
    request.body = await readJson(request.raw, reply.raw, limits, (bytes) => request.share?.take('uploadBytes', bytes))
  })
}

/** Adds the request's id to all log lines, and logs and emits one line for each finished request. */
function logCalls(app: FastifyInstance, { emit, trace }: AppDeps): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (!request.routeOptions.config?.open) request.traceparent = trace?.(request.id, request.headers)
    logWith({ requestId: request.id }, done)
  })
  app.addHook('onResponse', async (request, reply) => {
    const { method, caller, headers, log } = request
    const { statusCode: status, elapsedTime } = reply
    const route = routeOf(request)
    emit({ type: 'http_answered', requestId: request.id, method, route, status, ms: elapsedTime })
    log.info(
      {
        method,
        route,
        status,
        ms: Math.round(elapsedTime),
        interactionId: request.interactionId ?? interactionIn(request.params),
        projectId: caller?.projectId,
        keyId: caller?.keyId,
        theirRequestId: String(headers['x-request-id'] ?? '').slice(0, 128) || undefined,
      },
      'call',
    )
  })
}

function interactionIn(params: unknown): string | undefined {
  const { id } = (params ?? {}) as { id?: unknown }
  return typeof id === 'string' && id.startsWith('int_') ? id : undefined
}
