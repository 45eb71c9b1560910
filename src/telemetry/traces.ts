/**
 * OpenTelemetry traces: one span per request, run, model call and tool call. Enabled by the standard environment variables;
 * without them the SDK is not loaded.
 */

import type { Log } from './log.ts'
import type { Spans } from './spans.ts'

export interface Traces extends Spans {
  /** Sends the remaining spans, for a few seconds at most. Never rejects. */
  close(): Promise<void>
}

type Env = Readonly<Record<string, string | undefined>>

/** Returns undefined if traces are not enabled. Never throws: an unreachable collector is logged. */
export async function openTraces(env: Env, version: string, log: Log): Promise<Traces | undefined> {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (!endpoint || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none')
    return undefined
  const { createSpans } = await import('./spans.ts')
  const { openSdk } = await import('./otlp.ts')
  const { tracer, close } = await openSdk(env, version, log)
  return { ...createSpans(tracer, capturesContent(env)), close }
}

/** Whether spans contain what callers, models and tools say. Set by the variable of the GenAI conventions. */
function capturesContent({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: wanted = '' }: Env): boolean {
  return ['true', 'span_only', 'span_and_event'].includes(wanted.toLowerCase())
}
