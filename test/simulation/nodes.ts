/** A node of a simulated world: the real engine with simulated ports, and the connections of its callers. */
import type { Credentials } from '../../src/accounts/credentials.ts'
import { createVault } from '../../src/accounts/vault.ts'
import { DEFAULT_LIMITS, type Limits } from '../../src/domain/limits.ts'
import { createSchemaChecks } from '../../src/engine/agent/schema-checks.ts'
import { type Budgets, createBudgets } from '../../src/engine/budgets.ts'
import type { EngineDependencies } from '../../src/engine/dependencies.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { createHub } from '../../src/engine/hub.ts'
import { type EngineOptions, openEngine } from '../../src/engine/open-engine.ts'
import { openWebhooks, type Webhooks } from '../../src/engine/webhooks.ts'
import type { ToolContext, ToolProvider } from '../../src/tools/port.ts'
import { createSandboxTools } from '../../src/tools/tools.ts'
import type { WorldDatabase } from './database.ts'
import type { FileStore } from './files.ts'
import type { Journal } from './journal.ts'
import { createCatalogue } from './models.ts'
import type { Odds } from './odds.ts'
import { createOutside } from './outside.ts'
import { wallClock } from './runtime.ts'
import type { SandboxHost } from './sandboxes.ts'
import type { Process, Scheduler } from './scheduler.ts'
import type { HintExchange } from './wakeups.ts'

export interface World {
  readonly scheduler: Scheduler
  readonly odds: Odds
  readonly journal: Journal
  readonly database: WorldDatabase
  readonly files: FileStore
  readonly hints: HintExchange
  readonly limits: Limits
  readonly leaseMs: number
  readonly slots: number
  readonly hasFallback: boolean
  /** Whole texts of all answers of models, by their number. */
  readonly answers: string[]
  /** Every process of every node, by name. A restarted node is a new process. */
  readonly processes: Map<string, Process>
  /** Error-level log lines of all nodes, for analyzing a violation. */
  readonly errors: string[]
}

export interface Node {
  readonly process: Process
  /** Whether the node is cut off from the database. */
  cutOff: boolean
  /** Whether the node is dead or shutting down. */
  readonly leaving: boolean
  /**
   * Sends a request to the node's engine over the simulated network. Rejects with Disconnected if the node dies before
   * it answers or does not answer in time. Errors of the engine are passed on unchanged.
   */
  ask<T>(client: Process, what: string, act: (engine: Engine) => Promise<T>): Promise<T>
  /** Ends the node like kill -9. */
  kill(): void
  /** Ends the node like SIGTERM. Resolves in the client's time. */
  shutDown(client: Process, graceMs: number): Promise<void>
}

export class Disconnected extends Error {}

const SECRET = 'of a simulated world, and of no other'
const PATIENCE_MS = 20_000
const VAULT = createVault(SECRET)

export function simulatedLimits(changes: Partial<Limits>): Limits {
  return { ...DEFAULT_LIMITS, ...changes }
}

export interface NodeTerms {
  /** Name of this process. A restarted node gets another name. */
  readonly name: string
  readonly skewMs: number
  readonly works: EngineOptions['works']
}

export function startNode({ name, skewMs, works }: NodeTerms, host: SandboxHost, world: World): Node {
  const { scheduler } = world
  const process: Process = { name, state: 'running', skewMs }
  world.processes.set(name, process)
  const node = { process, cutOff: false, leaving: false }
  const lines = new Set<() => void>()
  let engine: Engine | undefined
  let webhooks: Webhooks | undefined
  let budgets: Budgets | undefined

  // Starts in an event of its own process, so that its timers belong to it.
  scheduler.schedule(process, 0, 'starts', () => {
    const deps = dependenciesOf(world, node, host, () => webhooks?.wake())
    const { leaseMs, slots } = world
    budgets = deps.budgets
    engine = openEngine({ deps, owner: name, slots, leaseMs, works })
    webhooks = openWebhooks({
      deps,
      secretOf: () => 'whsec_c2ltdWxhdGlvbg==',
      encode: ({ id, status }) => ({ id, status }),
      delaysMs: [1_000, 2_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000],
    })
  })

  function ask<T>(client: Process, what: string, act: (engine: Engine) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const hangUp = () => settle('disconnected', () => reject(new Disconnected(`${name} is gone`)))
      const patience = scheduler.schedule(client, PATIENCE_MS, `waited long enough for ${name}`, hangUp)
      function settle(how: string, then: () => void): void {
        if (!lines.delete(hangUp)) return
        patience.cancel()
        scheduler.schedule(client, scheduler.random.next() * 3, `${what}: ${how}`, then)
      }
      lines.add(hangUp)
      if (process.state === 'dead') return hangUp()
      scheduler.schedule(process, scheduler.random.next() * 3, `${what} for ${client.name}`, async () => {
        if (!engine) return hangUp()
        try {
          const value = await act(engine)
          settle('answer', () => resolve(value))
        } catch (error) {
          settle('error', () => reject(error))
        }
      })
    })
  }

  function kill(): void {
    process.state = 'dead'
    node.leaving = true
    for (const hangUp of lines) hangUp()
  }

  return Object.assign(node, {
    ask,
    kill,
    async shutDown(client: Process, graceMs: number) {
      node.leaving = true
      process.closing = true
      await ask(client, 'SIGTERM', async (running) => {
        await running
          .close(graceMs)
          .catch((error) => world.journal.violation('the world', `${name} could not close: ${error.stack}`))
        await webhooks?.close()
        await budgets?.close()
      }).catch(() => {})
      kill()
    },
  })
}

function dependenciesOf(
  world: World,
  node: { process: Process; cutOff: boolean },
  host: SandboxHost,
  onEnd: () => void,
): EngineDependencies {
  const { scheduler, odds, database, limits, files, errors } = world
  const { process } = node
  const { random, chance } = scheduler

  function passage() {
    const [thereMs, backMs] = [random.next() * 2, random.next() * 2]
    if (node.cutOff) return { thereMs, backMs: random.next() * 1_000, lost: 'there' as const }
    if (chance(odds.databaseLostThere)) return { thereMs, backMs: random.next() * 5_000, lost: 'there' as const }
    if (chance(odds.databaseLostBack)) return { thereMs, backMs: random.next() * 5_000, lost: 'back' as const }
    if (chance(odds.databaseLate)) return { thereMs: random.next() * 2_000, backMs: random.next() * 2_000 }
    return { thereMs, backMs }
  }

  const told: Pick<EngineDependencies, 'db' | 'now' | 'log' | 'emit'> = {
    db: database.connect(process, passage),
    now: () => wallClock(scheduler, process),
    log: {
      debug() {},
      info() {},
      warn() {},
      error(fields, message) {
        if (message === 'could not renew leases') process.lateAt = scheduler.now
        const { err, interactionId = '' } = fields as { err?: Error; interactionId?: string }
        errors.push(`${process.name}: ${message} ${interactionId} ${err?.stack ?? ''}`)
      },
    },
    emit: ({ type }) => type === 'ended' && onEnd(),
  }
  return {
    ...told,
    budgets: createBudgets(told),
    schemas: createSchemaChecks(),
    hub: createHub(world.hints.connect(process)),
    blobs: files.connect(process),
    buckets: { faultOf: () => 'must be none', sign: () => Promise.reject(new Error('not simulated')) },
    fileTypes: [],
    catalogue: createCatalogue(process, world),
    sandboxes: host.connect(process),
    egress: createOutside(process, world),
    credentials: {} as Credentials,
    vault: VAULT,
    toolProviders: [createSandboxTools(), createWorldTools(world, process)],
    mcpServers: new Set(),
    skills: { lookUp: async () => new Map(), mounts: async () => [] },
    limits,
    inside: 'nothing',
    lives: async (owner) => world.processes.get(owner)?.state !== 'dead',
  }
}

/**
 * Two tools whose effects can't be looked up: `post` has its effect immediately, `ask` after approval. Neither may run
 * beside another call. `look` has no effect, and returns its argument.
 */
function createWorldTools({ scheduler, journal }: World, process: Process): ToolProvider {
  return {
    offers: [],
    async open({ interactionId, spec }) {
      if (spec.tools.length === 0) return undefined
      let closed = false
      let looking = 0
      let acting = 0
      const tool = (name: string, needsApproval: boolean) => ({
        definition: { name, description: 'Has an effect outside.', parameters: { type: 'object' } },
        keyed: false,
        needsApproval,
        async run(_args: object, { key, signal }: Pick<ToolContext, 'key' | 'signal'>) {
          if (++acting > 1 || looking > 0) journal.violation(interactionId, `${name} runs beside another call`)
          await scheduler.sleep(process, scheduler.random.next() * 50, `${name} goes out`)
          if (signal.aborted || closed) return { output: 'It was stopped.' }
          journal.effect(interactionId, key)
          await scheduler.sleep(process, scheduler.random.next() * 500, `${name} comes back`)
          acting--
          return { output: 'Done.' }
        },
      })
      const look = {
        definition: { name: 'look', description: 'Returns its argument.', parameters: { type: 'object' } },
        keyed: false,
        repeatable: true,
        lane: () => 'shared' as const,
        async run({ at }: { readonly at?: unknown }) {
          if (++looking > 6 || acting > 0) journal.violation(interactionId, 'look runs beside too many calls')
          await scheduler.sleep(process, scheduler.random.next() * 500, 'look comes back')
          looking--
          return { output: String(at) }
        },
      }
      return {
        tools: () => [tool('post', false), tool('ask', true), look],
        async close() {
          closed = true
        },
      }
    },
  }
}
