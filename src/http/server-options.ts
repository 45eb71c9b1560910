/** Options of Fastify and Node's server: timeouts, request ids, proxies, and errors before there is a request. */
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { type FastifyBaseLogger, type FastifySchemaCompiler, type FastifyServerOptions, LogController } from 'fastify'
import type { z } from 'zod'
import type { Config } from '../config.ts'
import { newId } from '../domain/ids.ts'
import type { Gate } from './gate/gate.ts'
import { check } from './request/fields.ts'
import { decodeColons } from './request/path.ts'
import { answerClientError, answerProblem } from './response/problems.ts'

/** Time for the headers to arrive. A slow client needs a second; a slow-loris attack takes hours. */
const HEADERS_TIMEOUT_MS = 15_000
/** Time for the whole request to arrive: for 20 MiB it needs 1.4 Mbit/s. */
const REQUEST_TIMEOUT_MS = 120_000
/** Longer than the 60 s of common load balancers, so that we never close a connection that one is about to use. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000
const CHECK_CONNECTIONS_MS = 5_000
const MAX_PARAM_CHARS = 256

/** Validates query and path parameters. Codecs validate bodies, whose schema depends on the revision. */
const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (value: unknown) => {
    if (httpPart === 'body' || httpPart === 'headers') return { value }
    try {
      return { value: check(schema, value, 'The address') }
    } catch (error) {
      return { error: error as Error }
    }
  }
}
/** Does not validate responses: tests check that they match their schemas. */
const serializerCompiler = () => (data: unknown) => JSON.stringify(data)

/** Set later, they would find Fastify's own loaded: 120 modules that compile JSON Schemas, which alone its types know. */
const compilersFactory = {
  buildValidator: () => validatorCompiler,
  buildSerializer: () => serializerCompiler,
} as unknown as Compilers
type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>

export function serverOptions(config: Config, log: FastifyBaseLogger, gate: Gate): FastifyServerOptions {
  const node = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_CONNECTIONS_MS,
    // Node would refuse with an empty body; the gate does it with ours.
    requireHostHeader: false,
    // Below the 64 KiB that Node reads at once: of a body that is held back it reads that once, and no second time.
    highWaterMark: 48 * 1024,
  }
  const { tls } = config
  return {
    ...(tls
      ? { https: { ...node, cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) } }
      : { http: node }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    loggerInstance: log,
    schemaController: { compilersFactory },
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: () => newId('req'),
    requestIdHeader: false,
    // Fastify reads `X-Forwarded-For` from these alone, from the nearest on: what callers write into it themselves counts for nothing.
    trustProxy: config.trustedProxies.length > 0 ? [...config.trustedProxies] : false,
    routerOptions: { maxParamLength: MAX_PARAM_CHARS },
    rewriteUrl: (request) => decodeColons(request.url ?? '/'),
    // An address that the router can't read (broken percent-encoding, an endless id) never meets a hook. Fastify calls
    // it a 404, and so does the gate, in its place after key and rate.
    frameworkErrors: (error, request, reply) => {
      gate(request, reply).then(
        () => answerProblem(error, request, reply),
        (refusal) => answerProblem(refusal, request, reply),
      )
    },
    clientErrorHandler: answerClientError,
  } as FastifyServerOptions
}

/**
 * `Expect: 100-continue` is answered when the body is about to be read (json-body.ts), so that a refused request never
 * sends one; other expectations are passed over, as RFC 9110 (10.1.1) allows.
 */
export function continueLate(server: Server): void {
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (request, response) => server.emit('request', request, response))
  }
}
