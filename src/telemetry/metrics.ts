/**
 * Metrics in Prometheus's text format; docs/metrics.md describes them. Labels have few values: never a project, an interaction
 * or a caller's text. Events update counters (counters.ts); gauges are read at each scrape (readings.ts).
 */
import { collectDefaultMetrics, Gauge, Registry } from '@prometheus-io/client'
import { createCounters } from './counters.ts'
import type { Emit, TelemetryEvent } from './events.ts'
import { createReadings, type MetricSources } from './readings.ts'

export interface Metrics {
  readonly emit: Emit
  /** Adds sources that are read at each scrape. */
  watch(sources: MetricSources): void
  /** The exposition text, with its content type. */
  render(): Promise<{ readonly text: string; readonly contentType: string }>
}

export function createMetrics(version: string): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: 1_000 })
  const readings = createReadings(registers)
  const counters = createCounters(registers)
  new Gauge({
    name: 'errand_build_info',
    help: '1, with the version of Errand and of Node',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.version }, 1)

  return {
    emit: (event) => (counters[event.type] as (event: TelemetryEvent) => void)(event),
    watch: readings.watch,
    async render() {
      await readings.read()
      return { text: await registry.metrics(), contentType: registry.contentType }
    },
  }
}
