/** Metrics, the log and traces: every room emits its events to one function, which passes them to all three. */
import { VERSION } from '../domain/version.ts'
import type { Emit } from '../telemetry/events.ts'
import { logTelemetryEvents } from '../telemetry/log-telemetry-events.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { openTraces } from '../telemetry/traces.ts'
import type { Closers } from './closers.ts'
import type { OpenOptions } from './context.ts'

export interface Telemetry {
  readonly metrics: ReturnType<typeof createMetrics>
  readonly traces: Awaited<ReturnType<typeof openTraces>>
  readonly emit: Emit
  /** Calls `wake` when an interaction that has a webhook ends. */
  onWebhookDue(wake: () => void): void
}

export async function openTelemetry(
  { env, log }: Pick<OpenOptions, 'env' | 'log'>,
  closers: Closers,
): Promise<Telemetry> {
  const metrics = createMetrics(VERSION)
  const logEvent = logTelemetryEvents(log)
  const traces = await openTraces(env, VERSION, log)
  if (traces) closers.add(traces)
  let wakeWebhooks = () => {}
  return {
    metrics,
    traces,
    emit(event) {
      metrics.emit(event)
      logEvent(event)
      traces?.emit(event)
      if (event.type === 'ended' && event.webhook) wakeWebhooks()
    },
    onWebhookDue(wake) {
      wakeWebhooks = wake
    },
  }
}
