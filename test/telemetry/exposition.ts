/** Renders every metric that /metrics can serve, and parses Prometheus's text format. */
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { EVERY_MOMENT } from './moments.ts'

export interface Served {
  readonly name: string
  readonly type: string
  readonly help: string
  /** Label names of its series, without `le`. Empty if it has no series. */
  readonly labels: readonly string[]
}

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export function readSamples(text: string): Sample[] {
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels = '', value]) => ({
    name: name!,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key!, text!]),
    ),
    value: Number(value),
  }))
}

/** Sum of all series with this name and these labels. Undefined if there is none. */
export function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
  const found = readSamples(text).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
}

/** Parses Errand's own metrics. Metrics of Node and the process are left out. */
export function readServed(text: string): Served[] {
  const samples = readSamples(text)
  return [...text.matchAll(/^# HELP (errand_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)].map(([, name, help, type]) => {
    const own = samples.find((sample) => new RegExp(`^${name}(_bucket|_sum|_count)?$`).test(sample.name))
    return {
      name: name!,
      help: help!,
      type: type!,
      labels: Object.keys(own?.labels ?? {}).filter((each) => each !== 'le'),
    }
  })
}

/** Matches the name of a metric in a PromQL expression. */
export const METRIC_NAME = /\b(?:errand|nodejs|process)_\w+/g

/** Names of all series that can be served. */
export async function metricNames(): Promise<ReadonlySet<string>> {
  return new Set(readSamples(await exposition()).map(({ name }) => name))
}

const SOURCES = {
  queue: async () => ({ running: 3, queued: 2, oldestWaitMs: 1_500 }),
  webhooksPending: async () => 4,
  sandboxes: async () => ({ open: 1, warm: 2 }),
  connections: () => ({ open: 5, idle: 4, waiting: 0 }),
  worker: () => ({ running: 3, slots: 8 }),
  models: () => [{ name: 'svc-3.5-flash', resting: false }],
}

/** Text of /metrics after every telemetry event was emitted once, with a value from each source. */
export async function exposition(sources: Partial<typeof SOURCES> = {}): Promise<string> {
  const metrics = createMetrics('1.2.3')
  metrics.watch({ ...SOURCES, ...sources })
  for (const moment of Object.values(EVERY_MOMENT)) metrics.emit(moment)
  // Variants of these events that count failures.
  const { run } = EVERY_MOMENT.claimed
  metrics.emit({ ...EVERY_MOMENT.claimed, givenUp: true })
  metrics.emit({ ...EVERY_MOMENT.claimed, run: { ...run, epoch: 2 } })
  metrics.emit({ ...EVERY_MOMENT.left, cause: 'lost' })
  metrics.emit({ ...EVERY_MOMENT.left, cause: 'broken' })
  return (await metrics.render()).text
}
