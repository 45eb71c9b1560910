/**
 * Telemetry events as OpenTelemetry spans, by the GenAI conventions:
 *
 *   POST /v1beta/interactions → invoke_agent → chat …, execute_tool …, open_sandbox, settle
 *
 * An event is emitted when its work has ended, so its span is created then, with a start in the past. Only spans of requests and
 * runs are open meanwhile. A run belongs to the trace of the request that started it, on every node and after a crash: its spec
 * contains the `traceparent`.
 */
import {
  type Attributes,
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import type { Emit, RunName, TelemetryEvent } from './events.ts'
import { agentAttributes, chatAttributes, chatContent, endAttributes, toolAttributes, toolContent } from './genai.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>

export interface Spans {
  readonly emit: Emit
  /**
   * Begins a request's span, within the caller's trace if `headers` name one. Returns the W3C `traceparent` for the work that
   * belongs to it.
   */
  begin(requestId: string, headers: Headers): string | undefined
}

interface OpenRun {
  readonly interactionId: string
  readonly span: Span
}

const propagator = new W3CTraceContextPropagator()

export function createSpans(tracer: Tracer, withContent: boolean): Spans {
  const requests = new Map<string, Span>()
  const runs = new Map<string, OpenRun>()

  /** Records a span that ends now. Does nothing without an open parent (it was lost, or began before tracing). */
  function record(
    parent: Span | undefined,
    { name, kind = SpanKind.INTERNAL, ms, error }: { name: string; kind?: SpanKind; ms: number; error?: string },
    attributes: Attributes,
  ): void {
    if (!parent) return
    const startTime = now() - ms
    const span = tracer.startSpan(name, { kind, startTime, attributes }, trace.setSpan(ROOT_CONTEXT, parent))
    if (error !== undefined) fail(span, error)
    span.end(now())
  }

  const runOf = (run: Pick<RunName, 'id' | 'epoch'>) => runs.get(nameOf(run))?.span

  function emit(moment: TelemetryEvent): void {
    switch (moment.type) {
      case 'http_answered': {
        const { requestId, method, route, status } = moment
        const span = requests.get(requestId)
        requests.delete(requestId)
        if (route !== 'none') span?.updateName(`${method} ${route}`).setAttribute('http.route', route)
        span?.setAttributes({ 'http.request.method': method, 'http.response.status_code': status })
        if (status >= 500 && span) fail(span, String(status))
        span?.end(now())
        break
      }
      case 'claimed': {
        const { run, spec } = moment
        const parent = extract({ traceparent: spec.traceparent })
        const span = tracer.startSpan(
          'invoke_agent',
          { startTime: now(), attributes: agentAttributes(run, spec) },
          parent,
        )
        runs.set(nameOf(run), { interactionId: run.id, span })
        break
      }
      case 'model_called': {
        const { model, outcome, ms, run } = moment
        const span = { name: `chat ${model.model}`, kind: SpanKind.CLIENT, ms, error: failureOf(moment) }
        record(runOf(run), span, { ...chatAttributes(moment), ...(withContent && chatContent(moment, outcome)) })
        break
      }
      case 'tool_called': {
        const { ending, ms, run } = moment
        // The name of an unknown tool is the model's own text.
        const name = ending === 'refused' ? 'execute_tool' : `execute_tool ${moment.name}`
        const span = { name, ms, error: ending === 'answered' ? undefined : ending }
        record(runOf(run), span, { ...toolAttributes(moment), ...(withContent && toolContent(moment)) })
        break
      }
      case 'sandbox_opened': {
        const { name, fresh, error, ms, run } = moment
        const attributes = { 'errand.sandbox.name': name, 'errand.sandbox.fresh': fresh }
        record(runOf(run), { name: 'open_sandbox', ms, error }, attributes)
        break
      }
      case 'settled':
        record(runOf(moment.run), { name: 'settle', ms: moment.ms }, {})
        break
      case 'ended':
        for (const { interactionId, span } of runs.values()) {
          if (interactionId !== moment.interactionId) continue
          span.setAttributes(endAttributes(moment))
          if (moment.code !== undefined) fail(span, moment.code)
        }
        break
      case 'left': {
        const span = runOf(moment.run)
        runs.delete(nameOf(moment.run))
        span?.setAttribute('errand.run.left', moment.cause)
        if (span && (moment.cause === 'lost' || moment.cause === 'broken')) fail(span, moment.cause)
        span?.end(now())
        break
      }
    }
  }

  return {
    emit,
    begin(requestId, headers) {
      const attributes = { 'errand.request.id': requestId }
      const span = tracer.startSpan('HTTP', { kind: SpanKind.SERVER, startTime: now(), attributes }, extract(headers))
      requests.set(requestId, span)
      const carrier: { traceparent?: string } = {}
      propagator.inject(trace.setSpan(ROOT_CONTEXT, span), carrier, defaultTextMapSetter)
      return carrier.traceparent
    },
  }
}

function extract(carrier: object): Context {
  return propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter)
}

function nameOf({ id, epoch }: Pick<RunName, 'id' | 'epoch'>): string {
  return `${id} ${epoch}`
}

function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
}

function failureOf({ outcome }: Extract<TelemetryEvent, { type: 'model_called' }>): string | undefined {
  return outcome.ok ? undefined : outcome.failure.kind
}

/** The clock of all spans. The SDK's own clock is less precise: a child would seem to outlive its parent. */
function now(): number {
  return performance.timeOrigin + performance.now()
}
