/** What an operator asks of the running server, in Prometheus's text format. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client'
import type { TerminalStatus } from '../domain/event.ts'

export interface Metrics {
  interactionEnded(status: TerminalStatus, durationMs: number): void
  httpAnswered(method: string, route: string, status: number, durationMs: number): void
  /** Asked at each scrape. */
  observe(gauges: MetricSources): void
  /** The exposition text, with its content type. */
  render(): Promise<{ readonly text: string; readonly contentType: string }>
}

export interface MetricSources {
  /** Interactions by state now: `running` have a worker, `queued` wait for one. */
  readonly queue: () => Promise<{ running: number; queued: number; oldestWaitMs: number }>
  readonly sandboxes: () => Promise<number>
}

const SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800]

export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: 1_000 })

  const interactions = new Histogram({
    name: 'errand_interaction_duration_seconds',
    help: 'From acceptance to the end, by final status',
    labelNames: ['status'],
    buckets: SECONDS,
    registers,
  })
  const http = new Histogram({
    name: 'errand_http_request_duration_seconds',
    help: 'HTTP answers; a stream counts until its last byte',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS,
    registers,
  })
  const failures = new Counter({
    name: 'errand_http_server_errors_total',
    help: 'Answers with a status of 500 and above',
    registers,
  })

  return {
    interactionEnded(status, durationMs) {
      interactions.observe({ status }, durationMs / 1_000)
    },
    httpAnswered(method, route, status, durationMs) {
      http.observe({ method, route, status: String(status) }, durationMs / 1_000)
      if (status >= 500) failures.inc()
    },
    observe(sources) {
      const oldest = new Gauge({
        name: 'errand_queue_oldest_wait_seconds',
        help: 'How long the interaction that waits longest has waited for a worker',
        registers,
      })
      new Gauge({
        name: 'errand_interactions',
        help: 'Interactions that are not over: running (with a worker) or queued',
        labelNames: ['state'],
        registers,
        async collect() {
          const { running, queued, oldestWaitMs } = await sources.queue()
          this.set({ state: 'running' }, running)
          this.set({ state: 'queued' }, queued)
          oldest.set(oldestWaitMs / 1_000)
        },
      })
      new Gauge({
        name: 'errand_sandboxes',
        help: 'Living sandboxes of interactions',
        registers,
        async collect() {
          this.set(await sources.sandboxes())
        },
      })
    },
    async render() {
      return { text: await registry.metrics(), contentType: registry.contentType }
    },
  }
}
