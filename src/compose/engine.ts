/** The engine, the metrics that are read from it, and the delivery of webhooks. */
import { webhookSecret } from '../accounts/webhook-secret.ts'
import type { Blobs } from '../blobs/port.ts'
import { createBuckets } from '../buckets/create-buckets.ts'
import type { Egress } from '../egress/port.ts'
import { createSchemaChecks } from '../engine/agent/schema-checks.ts'
import { createBudgets } from '../engine/budgets.ts'
import type { EngineDependencies } from '../engine/dependencies.ts'
import { createHub } from '../engine/hub.ts'
import { openEngine } from '../engine/open-engine.ts'
import { openWebhooks } from '../engine/webhooks.ts'
import type { Codec } from '../http/wire/codec.ts'
import type { Catalogue } from '../models/port.ts'
import { isProcessAlive } from '../sandbox/data-directory.ts'
import type { Sandboxes } from '../sandbox/port.ts'
import { withTelemetry } from '../sandbox/telemetry.ts'
import { readQueue } from '../store/queue.ts'
import { countPendingWebhooks } from '../store/webhooks.ts'
import type { AccountParts } from './accounts.ts'
import type { ComposeContext } from './context.ts'
import type { SkillRoom } from './files.ts'
import type { Store } from './store.ts'
import type { Telemetry } from './telemetry.ts'

type OpenEngine = ReturnType<typeof openEngine>

interface Rooms extends Pick<AccountParts, 'credentials' | 'vault'> {
  readonly store: Store
  readonly blobs: Blobs
  readonly catalogue: Catalogue
  readonly sandboxes: Sandboxes
  /** Describes the sandbox environment to the model. */
  readonly inside: string
  readonly egress: Egress
  readonly skills: SkillRoom
  readonly toolProviders: EngineDependencies['toolProviders']
}

export function createEngineDependencies(context: ComposeContext, rooms: Rooms): EngineDependencies {
  const { config, env, log, emit, onPoint, closers } = context
  const { store, blobs, catalogue, sandboxes, inside, egress, credentials, vault, skills, toolProviders } = rooms
  const { db, wakeups } = store
  return {
    db,
    hub: createHub(wakeups),
    blobs,
    buckets: createBuckets(config.files, env),
    fileTypes: config.files.types,
    catalogue,
    sandboxes: withTelemetry(sandboxes, emit),
    egress,
    credentials,
    vault,
    toolProviders,
    mcpServers: new Set(Object.keys(config.mcp)),
    skills: { lookUp: skills.lookUp, mounts: skills.cache.mounts },
    limits: config.limits,
    budgets: closers.add(createBudgets({ db, now: Date.now, log, emit })),
    schemas: createSchemaChecks(),
    inside,
    now: Date.now,
    lives: isProcessAlive,
    log,
    emit,
    onPoint,
  }
}

export function openEngineWith(
  { config, works, closers }: ComposeContext,
  deps: EngineDependencies,
  { owner, nodes }: Store,
): OpenEngine {
  const slots = config.workerSlots
  const leaseMs = config.leaseS * 1_000
  return closers.add(openEngine({ deps, owner, slots, leaseMs, works, leads: nodes?.leads }))
}

/** Registers the gauges that are read when the metrics are rendered. */
export function watchEngine(
  { config, works }: ComposeContext,
  { metrics }: Telemetry,
  engine: OpenEngine,
  { db, sandboxes, catalogue }: Pick<EngineDependencies, 'db' | 'sandboxes' | 'catalogue'>,
): void {
  metrics.watch({
    queue: () => readQueue(db),
    webhooksPending: () => countPendingWebhooks(db),
    sandboxes: sandboxes.counts,
    connections: () => db.connections?.(),
    worker: () => ({ running: engine.running, slots: works === 'none' ? 0 : config.workerSlots }),
    models: () =>
      catalogue.names().map((name) => ({ name, resting: catalogue.get(name)?.health?.().state === 'resting' })),
  })
}

/** Only a server delivers webhooks; a one-shot command leaves them to it. */
export function openWebhookDelivery(
  { works, closers }: ComposeContext,
  telemetry: Telemetry,
  deps: EngineDependencies,
  revisions: readonly Codec[],
  secret: string,
): void {
  if (works !== 'all') return
  const webhooks = openWebhooks({
    deps,
    secretOf: (projectId) => webhookSecret(secret, projectId),
    encode(interaction, revision) {
      const codec = revisions.find((each) => each.revision === revision) ?? revisions.at(-1)!
      return codec.webhooks.encodeEvent(interaction)
    },
  })
  telemetry.onWebhookDue(closers.add(webhooks).wake)
}
