/**
 * OpenTelemetry traces: a span a request, a run, a model call, a tool call. On where the standard variables name a
 * collector; else nothing of it is loaded.
 */

import type { Log } from './log.ts'
import type { Spans } from './spans.ts'

export interface Traces extends Spans {
  /** Sends the remaining spans, for a few seconds at most. Never rejects. */
  close(): Promise<void>
}

type Env = Readonly<Record<string, string | undefined>>

/** Undefined where nobody wants them. Throws nothing: a collector that can't be reached is told by the log. */
export async function openTraces(env: Env, version: string, log: Log): Promise<Traces | undefined> {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (!endpoint || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none')
    return undefined
  const { createSpans } = await import('./spans.ts')
  const { openSdk } = await import('./otlp.ts')
  const { tracer, close } = await openSdk(env, version, log)
  return { ...createSpans(tracer, capturesContent(env)), close }
}

/** What callers, models and tools say is shown where the GenAI conventions' own variable asks for it, and nowhere else. */
function capturesContent({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: wanted = '' }: Env): boolean {
  return ['true', 'span_only', 'span_and_event'].includes(wanted.toLowerCase())
}
