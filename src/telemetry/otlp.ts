/**
 * Sets up OpenTelemetry's SDK. The queue of spans is limited: if the collector is down, spans are lost and nothing else. The
 * exporter reads the standard variables itself (endpoint, headers, timeout, certificates, compression).
 */
import { type DiagLogger, diag, type Tracer } from '@opentelemetry/api'
import { setGlobalErrorHandler } from '@opentelemetry/core'
import { detectResources, envDetector, hostDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Log } from './log.ts'

type Env = Readonly<Record<string, string | undefined>>

const SAMPLERS = /^(parentbased_)?(always_on|always_off|traceidratio)$/
const MAX_WAITING_SPANS = 2_048
const MAX_VALUE_CHARS = 16_384
const SEND_MS = 5_000
/** Minimum time between two log lines about an unreachable collector. */
const WARN_EVERY_MS = 60_000

export async function openSdk(
  env: Env,
  version: string,
  log: Log,
): Promise<{ readonly tracer: Tracer; close(): Promise<void> }> {
  const warn = createWarnings(log)
  setGlobalErrorHandler(warn)
  diag.setLogger(errorsOnly(warn), { suppressOverrideMessage: true })
  const exporter = await openExporter(env)
  const own = resourceFromAttributes({ 'service.name': 'errand', 'service.version': version })
  const provider = new TracerProvider({
    resource: own.merge(detectResources({ detectors: [hostDetector, envDetector] })),
    sampler: samplerOf(env),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_CHARS },
    spanProcessors: [
      new BatchSpanProcessor({ exporter, maxQueueSize: MAX_WAITING_SPANS, exportTimeoutMillis: 2 * SEND_MS }),
    ],
  })
  return {
    tracer: provider.getTracer('errand', version),
    async close() {
      const timeout = Promise.withResolvers<void>()
      const timer = setTimeout(timeout.resolve, SEND_MS)
      await Promise.race([provider.shutdown().catch(warn), timeout.promise])
      clearTimeout(timer)
    },
  }
}

async function openExporter(env: Env) {
  const timed = env.OTEL_EXPORTER_OTLP_TIMEOUT || env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT
  const options = timed ? {} : { timeoutMillis: SEND_MS }
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter(options)
}

/** The sampler with a standard name. Default: all spans, except in traces that the caller does not sample. */
function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: arg }: Env): Sampler {
  const [, parentBased, root] = SAMPLERS.exec(name ?? '') ?? SAMPLERS.exec('parentbased_always_on')!
  const ratio = arg === undefined || Number.isNaN(Number(arg)) ? 1 : Number(arg)
  const sampler =
    root === 'always_off'
      ? new AlwaysOffSampler()
      : root === 'traceidratio'
        ? new TraceIdRatioBasedSampler(ratio)
        : new AlwaysOnSampler()
  return parentBased ? new ParentBasedSampler({ root: sampler }) : sampler
}

function createWarnings(log: Log): (error: unknown) => void {
  let silentUntil = 0
  return (error) => {
    const now = performance.now()
    if (now < silentUntil) return
    silentUntil = now + WARN_EVERY_MS
    log.warn({ err: error }, 'traces could not be sent; a limited number is kept for a retry, others are dropped')
  }
}

function errorsOnly(warn: (error: unknown) => void): DiagLogger {
  const nothing = () => {}
  return {
    error: (message) => warn(new Error(message)),
    warn: nothing,
    info: nothing,
    debug: nothing,
    verbose: nothing,
  }
}
