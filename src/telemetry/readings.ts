/**
 * Gauges that are read at each scrape. A gauge that can't be read is left out, and `errand_up` shows which part failed: metrics
 * must work while the database is down.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Gauge, type Registry } from '@prometheus-io/client'

export interface MetricSources {
  /** Interactions in the whole database that have not ended: `running` have a worker, `queued` wait for one. */
  readonly queue: () => Promise<{ readonly running: number; readonly queued: number; readonly oldestWaitMs: number }>
  /** Webhooks in the whole database that are due and neither delivered nor failed. */
  readonly webhooksPending: () => Promise<number>
  /** Sandboxes of this process's sandbox host. */
  readonly sandboxes: () => Promise<{ readonly open: number; readonly warm: number }>
  /** Undefined if the database has no connection pool. */
  readonly connections: () => { readonly open: number; readonly idle: number; readonly waiting: number } | undefined
  /** Runs and slots of this process. */
  readonly worker: () => { readonly running: number; readonly slots: number }
  readonly models: () => readonly { readonly name: string; readonly resting: boolean }[]
}

export interface Readings {
  watch(sources: MetricSources): void
  /** Updates the gauges. Never rejects. */
  read(): Promise<void>
}

/** Shorter than Prometheus's scrape timeout. */
const READ_TIMEOUT_MS = 4_000

export function createReadings(registers: Registry[]): Readings {
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers })

  const up = gauge('errand_up', '1 where that part answered this scrape in time, else 0', 'part')
  const interactions = gauge(
    'errand_interactions',
    'Interactions that are not over: `running` (with a worker) or `queued`; of the whole database',
    'state',
  )
  const oldest = gauge(
    'errand_queue_oldest_wait_seconds',
    'How long the interaction that waits longest has waited for a worker; of the whole database',
  )
  const webhooks = gauge(
    'errand_webhooks_pending',
    'Webhooks of ended interactions that are yet to be delivered; of the whole database',
  )
  const sandboxes = gauge(
    'errand_sandboxes',
    'Sandboxes of this machine: `open` (interactions that have any) or `warm` (ready and unused)',
    'state',
  )
  const connections = gauge(
    'errand_database_connections',
    'Connections to Postgres: `open`, `idle` of these, and `waiting`, those who wait for one',
    'state',
  )
  const runs = gauge(
    'errand_worker_runs',
    'Interactions that this process works on; one that waits for a person is none',
  )
  const slots = gauge('errand_worker_slots', 'Interactions that this process works on at most')
  const resting = gauge(
    'errand_model_resting',
    '1 while the model’s provider is left alone because it failed again and again, else 0',
    'model',
  )
  let sources: MetricSources | undefined

  /** Sets the gauges from `look`. Hides them if it fails or takes too long. */
  async function show<T>(
    part: string,
    look: () => Promise<T>,
    gauges: readonly Pick<Gauge<string>, 'reset' | 'remove'>[],
    set: (found: T) => void,
  ): Promise<void> {
    const found = await Promise.race([look().catch(() => undefined), delay(READ_TIMEOUT_MS, undefined, { ref: false })])
    for (const each of gauges) {
      each.reset()
      each.remove({}) // without labels it would show 0
    }
    up.set({ part }, found === undefined ? 0 : 1)
    if (found !== undefined) set(found)
  }

  function showProcess({ worker, connections: pool, models }: MetricSources): void {
    const { running, slots: most } = worker()
    runs.set(running)
    slots.set(most)
    for (const [state, count] of Object.entries(pool() ?? {})) connections.set({ state }, count)
    for (const model of models()) resting.set({ model: model.name }, model.resting ? 1 : 0)
  }

  return {
    watch(given) {
      sources = given
    },
    async read() {
      if (!sources) return
      const { queue, webhooksPending } = sources
      showProcess(sources)
      await Promise.all([
        show(
          'database',
          () => Promise.all([queue(), webhooksPending()]),
          [interactions, oldest, webhooks],
          ([{ running, queued, oldestWaitMs }, pending]) => {
            interactions.set({ state: 'running' }, running)
            interactions.set({ state: 'queued' }, queued)
            oldest.set(oldestWaitMs / 1_000)
            webhooks.set(pending)
          },
        ),
        show('sandboxes', sources.sandboxes, [sandboxes], ({ open, warm }) => {
          sandboxes.set({ state: 'open' }, open)
          sandboxes.set({ state: 'warm' }, warm)
        }),
      ])
    },
  }
}
