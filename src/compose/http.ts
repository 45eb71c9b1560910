/** The HTTP server: its routes' dependencies, and listening. */
import type { AddressInfo } from 'node:net'
import type { EngineDependencies } from '../engine/dependencies.ts'
import type { Engine } from '../engine/engine.ts'
import { healthByNode } from '../engine/queue/model-health.ts'
import { type AppDeps, createApp } from '../http/app.ts'
import type { ConsoleDependencies } from '../http/console-api/dependencies.ts'
import { createMemoryCounter, createSharedCounter } from '../http/gate/rate-counters.ts'
import { createRateLimits } from '../http/gate/rate-limits.ts'
import { createSigner } from '../http/response/signed-urls.ts'
import { openMetricsPort } from '../http/routes/metrics.ts'
import type { Codec } from '../http/wire/codec.ts'
import { createAgentStore } from '../store/agents.ts'
import { createMcpCheck } from '../tools/mcp/check-server.ts'
import { type AccountParts, createSignInDependencies } from './accounts.ts'
import type { ComposeContext } from './context.ts'
import type { SkillRoom } from './files.ts'
import type { Store } from './store.ts'
import type { Telemetry } from './telemetry.ts'
import type { Tools } from './tools.ts'

export interface HttpServer {
  /** Starts to accept connections; call once. Rejects as node's `listen` does. */
  listen(): Promise<{ readonly url: string }>
}

interface Rooms extends Pick<AccountParts, 'accounts' | 'credentials'>, Pick<AppDeps, 'facts'> {
  readonly engine: Engine
  readonly parts: EngineDependencies
  readonly store: Store
  readonly skills: SkillRoom
  readonly tools: Tools
  readonly telemetry: Telemetry
  readonly revisions: readonly Codec[]
  readonly secret: string
}

export async function openHttp(context: ComposeContext, rooms: Rooms): Promise<HttpServer> {
  const { config, emit, log, closers } = context
  const { engine, parts, store, skills, telemetry, accounts, credentials, facts, revisions, secret } = rooms
  const { db, nodes } = store
  const { blobs, catalogue } = parts
  // Signed addresses begin with the server's own. With port 0 that is known only once the server listens.
  let publicUrl = config.publicUrl
  const agents = createAgentStore({ db, defaultModel: catalogue.defaultName })
  const counter = db.dialect === 'postgres' ? createSharedCounter(db) : createMemoryCounter
  const app = await createApp({
    config,
    revisions,
    engine,
    accounts,
    console: consoleDependencies(context, rooms, agents, () => publicUrl!),
    credentials,
    skills,
    agents,
    blobs,
    catalogue,
    facts,
    workers: nodes && (() => nodes.living().filter(({ role }) => role !== 'api').length),
    signer: createSigner({ publicUrl: () => publicUrl, secret }),
    rateLimits: createRateLimits(config.limits, counter),
    metrics: telemetry.metrics,
    trace: telemetry.traces?.begin,
    emit,
    log,
  })
  closers.add(app)
  return {
    async listen() {
      await app.listen({ host: config.host, port: config.port })
      if (config.metrics.port !== undefined) {
        closers.add(await openMetricsPort(telemetry.metrics, { host: config.host, port: config.metrics.port }))
      }
      const { port } = app.server.address() as AddressInfo
      const host = config.host.includes(':') ? `[${config.host}]` : config.host
      const url = `${config.tls ? 'https' : 'http'}://${host}:${port}`
      publicUrl ??= url
      return { url }
    },
  }
}

function consoleDependencies(
  { config, log }: ComposeContext,
  { engine, parts, store, accounts, tools, secret }: Rooms,
  agents: ConsoleDependencies['agents'],
  publicUrl: () => string,
): ConsoleDependencies {
  const { catalogue, budgets } = parts
  const kinds = Object.entries(config.mcp).map(([name, server]) => [name, 'command' in server ? 'program' : 'address'])
  return {
    ...createSignInDependencies(config, { db: store.db, accounts, budgets, secret, publicUrl, log }),
    engine,
    agents,
    catalogue,
    mcpServers: Object.fromEntries(kinds),
    checkMcp: createMcpCheck(tools.mcp),
    nodes: () => healthByNode(store.nodes?.living(), catalogue),
  }
}
