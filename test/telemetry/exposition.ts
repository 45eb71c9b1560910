/** What /metrics serves, in Prometheus's text format: all that there can be, and the format read. */
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { EVERY_MOMENT } from './moments.ts'

export interface Served {
  readonly name: string
  readonly type: string
  readonly help: string
  /** Label names of its series, `le` left out. Empty while it has no series. */
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

/** The sum over all series of that name whose labels hold these. Undefined where there is none. */
export function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
  const found = readSamples(text).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
}

/** Our own metrics, without those of the process and of Node. */
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

/** Of a metric, in an expression of PromQL. */
export const METRIC_NAME = /\b(?:errand|nodejs|process)_\w+/g

/** Names of all series that are ever served. */
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

/** All that is ever served: each moment told once, each source asked. */
export async function exposition(sources: Partial<typeof SOURCES> = {}): Promise<string> {
  const metrics = createMetrics('1.2.3')
  metrics.watch({ ...SOURCES, ...sources })
  for (const moment of Object.values(EVERY_MOMENT)) metrics.emit(moment)
  // Those that count what should not happen.
  const { run } = EVERY_MOMENT.claimed
  metrics.emit({ ...EVERY_MOMENT.claimed, givenUp: true })
  metrics.emit({ ...EVERY_MOMENT.claimed, run: { ...run, epoch: 2 } })
  metrics.emit({ ...EVERY_MOMENT.left, cause: 'lost' })
  metrics.emit({ ...EVERY_MOMENT.left, cause: 'broken' })
  return (await metrics.render()).text
}
