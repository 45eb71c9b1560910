/**
 * What an operator asks of the running server, in Prometheus's text format; docs/metrics.md tells each. Labels are few and
 * bounded: never a project, an interaction or a caller's words. Moments are counted as they are told (counters.ts); how
 * things stand now is looked up at each scrape (readings.ts).
 */
import { collectDefaultMetrics, Gauge, Registry } from '@prometheus-io/client'
import { createCounters } from './counters.ts'
import type { Emit, TelemetryEvent } from './events.ts'
import { createReadings, type MetricSources } from './readings.ts'

export interface Metrics {
  readonly emit: Emit
  /** From now on each scrape asks these, too. */
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
    emit: (moment) => (counters[moment.type] as (moment: TelemetryEvent) => void)(moment),
    watch: readings.watch,
    async render() {
      await readings.read()
      return { text: await registry.metrics(), contentType: registry.contentType }
    },
  }
}
