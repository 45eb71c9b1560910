/** The only place where adapters are built. What is opened here is closed here, in reverse. */
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { createAccountLog } from './accounts/account-log.ts'
import type { Accounts } from './accounts/accounts.ts'
import { createCredentials } from './accounts/create-credentials.ts'
import { makeFirstKey, makeWelcome, type Welcome } from './accounts/first-start.ts'
import { createJoining } from './accounts/joining.ts'
import { openAccounts } from './accounts/open-accounts.ts'
import { loadSecret } from './accounts/secret.ts'
import { createSignIn, type OidcOptions } from './accounts/sign-in.ts'
import { createVault } from './accounts/vault.ts'
import { webhookSecret } from './accounts/webhook-secret.ts'
import { openDiskBlobs } from './blobs/disk.ts'
import type { Blobs } from './blobs/port.ts'
import { openS3Blobs } from './blobs/s3.ts'
import { createBuckets } from './buckets/create-buckets.ts'
import type { Begun } from './compose/begin-sandboxes.ts'
import { warnings } from './config/nodes.ts'
import type { Config } from './config.ts'
import { TOOL_NAMES, type ToolName } from './domain/agent.ts'
import { newId } from './domain/ids.ts'
import { VERSION } from './domain/version.ts'
import { readAuthorities } from './egress/authorities.ts'
import { createEgress } from './egress/create-egress.ts'
import { createLibraryFetch } from './egress/library-fetch.ts'
import { healthByNode, healthOf } from './engine/agent/model-health.ts'
import { createSchemaChecks } from './engine/agent/schema-checks.ts'
import { createBudgets } from './engine/budgets.ts'
import type { EngineParts } from './engine/dependencies.ts'
import type { Engine } from './engine/engine.ts'
import { createHub } from './engine/hub.ts'
import { openEngine } from './engine/open-engine.ts'
import { type Nodes, openNodes } from './engine/queue/nodes.ts'
import { openWebhooks, type Webhooks } from './engine/webhooks.ts'
import { createApp } from './http/app.ts'
import type { ConsoleDependencies } from './http/console-api/dependencies.ts'
import { createMemoryCounter, createSharedCounter } from './http/gate/rate-counters.ts'
import { createRateLimits } from './http/gate/rate-limits.ts'
import { createSigner } from './http/response/signed-urls.ts'
import { openMetricsPort } from './http/routes/metrics.ts'
import type { ServerFacts } from './http/server-facts.ts'
import { createRevision20260520 } from './http/wire/2026-05-20/codec.ts'
import { openCatalogue } from './models/catalogue.ts'
import { demoEntry } from './models/demo/entry.ts'
import type { Catalogue } from './models/port.ts'
import { observeSandboxes } from './sandbox/observed.ts'
import { lives, loadPlace, showLiving } from './sandbox/place.ts'
import type { SandboxFacts } from './sandbox/port.ts'
import { createSearch, type SearchChoice } from './search/create-search.ts'
import { openSkills } from './skills/open-skills.ts'
import { createAgentStore } from './store/agents.ts'
import type { Database } from './store/port.ts'
import { readQueue } from './store/queue.ts'
import { listRemovals, type Removal } from './store/removals.ts'
import { openSqlite } from './store/sqlite/sqlite.ts'
import { reportUsage } from './store/usage-report.ts'
import { NO_WAKEUPS, type Wakeups } from './store/wakeups.ts'
import { countPendingWebhooks } from './store/webhooks.ts'
import { emitDatabaseWrites } from './store/write-telemetry.ts'
import type { Emit } from './telemetry/events.ts'
import type { Log } from './telemetry/log.ts'
import { logMoments } from './telemetry/log-moments.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { openTraces } from './telemetry/traces.ts'
import { createBrowserTools } from './tools/browser/browser.ts'
import type { BrowserParts } from './tools/browser/life.ts'
import { createMcpCheck } from './tools/mcp/check.ts'
import { createMcp, type McpOptions } from './tools/mcp/provider.ts'
import type { ToolProvider } from './tools/port.ts'
import { createSkillTools } from './tools/skill.ts'
import { createSandboxTools } from './tools/tools.ts'
import { createWebSearch } from './tools/web-search.ts'

export interface OpenOptions {
  readonly log: FastifyBaseLogger
  /**
   * `serve`: works on all that waits. `one-shot`: for one command, perhaps beside a server on the same data dir: works on
   * what it accepted itself alone.
   */
  readonly mode: 'serve' | 'one-shot'
  /** Closed here. */
  readonly sandboxes: Begun
  /** Where the model providers' keys are looked up. */
  readonly env: NodeJS.ProcessEnv
  /** For tests. */
  readonly onPoint?: EngineParts['onPoint']
}

/** The accounts and what is on record: no sandbox, no models, nothing that takes time to start. */
export interface Admin {
  readonly accounts: Accounts
  /** What was removed last, newest first. */
  removals(limit: number): Promise<readonly Removal[]>
  close(): Promise<void>
}

export interface Errand {
  readonly engine: Engine
  readonly accounts: Accounts
  readonly catalogue: Catalogue
  readonly database: Pick<Database, 'dialect' | 'walled'>
  /** Its sandboxes, or its workers'; its tools, and what to do about those that it has not. */
  readonly facts: ServerFacts
  /** What `web_search` asks, or why there is none. */
  readonly search: string
  /** On the same Postgres, this one included where it serves. */
  readonly nodes: ReturnType<Nodes['living']>
  /** The key that was made because the data dir had none: to be shown once, stored nowhere. */
  readonly firstKey: string | undefined
  /** For the first owner; undefined where there is one, and on workers. To be shown once, too. */
  readonly welcome: Welcome | undefined
  /** Starts to answer over HTTP; once. Rejects as node's `listen` does. */
  listen(): Promise<{ readonly url: string }>
  /**
   * Takes no more work, waits up to `graceMs` for what runs, closes everything. Returns whether each part could be closed;
   * the log has why not. Never rejects. Idempotent.
   */
  close(graceMs: number): Promise<boolean>
}

export async function openAdmin(config: Config, log: Log): Promise<Admin> {
  const db = await openDatabase(config, log)
  return {
    accounts: openAccounts({ db, secret: loadSecret(config.dataDir, config.secret) }),
    removals: (limit) => listRemovals(db, limit),
    close: db.close,
  }
}

export async function openErrand(config: Config, options: OpenOptions): Promise<Errand> {
  const closers = createClosers(options.log)
  try {
    return await build(config, options, closers)
  } catch (error) {
    await closers.close(0)
    // What failed may have failed before it took them over.
    await (await options.sandboxes.opened.catch(() => undefined))?.close()
    throw error
  }
}

async function build(config: Config, options: OpenOptions, closers: Closers): Promise<Errand> {
  const { log, mode, env, onPoint } = options
  const metrics = createMetrics(VERSION)
  let webhooks: Webhooks | undefined
  const logMoment = logMoments(log)
  const traces = await openTraces(env, VERSION, log)
  if (traces) closers.add(traces)
  const emit: Emit = (moment) => {
    metrics.emit(moment)
    logMoment(moment)
    traces?.emit(moment)
    if (moment.type === 'ended' && moment.webhook) webhooks?.wake()
  }
  const works = config.role === 'api' ? 'none' : mode === 'one-shot' ? 'own' : 'all'
  for (const sentence of warnings(config)) log.warn(sentence)
  const secret = loadSecret(config.dataDir, config.secret)
  const db = emitDatabaseWrites(closers.add(await openDatabase(config, log, emit)), emit)
  const wakeups = closers.add(await openWakeups(config, log))
  const owner = `${loadPlace(config.dataDir)}.${newId('req')}`
  closers.add(await showLiving(owner))
  const nodes =
    config.databaseUrl === undefined
      ? undefined
      : closers.add(
          await openNodes({
            db,
            log,
            self: mode === 'serve' ? { id: owner, role: config.role, version: VERSION } : undefined,
          }),
        )
  const blobs = closers.add(await openBlobs(config.blobs))
  const accounts = openAccounts({ db, secret })
  const vault = createVault(secret)
  const credentials = createCredentials({ db, vault })
  const [catalogue, sandboxes] = await Promise.all([
    openCatalogue({
      ...config,
      ownSearch: config.search.provider === 'model',
      calls: works !== 'none',
      env,
      log,
      emit,
      demoEntry,
    }).then(closers.add),
    options.sandboxes.opened.then(closers.add),
  ])
  const ownFacts = await sandboxes.facts()
  const sandboxFacts = () => (works === 'none' ? nodes?.workersFacts() : undefined) ?? ownFacts
  const egress = createEgress({ ...config.egress, authorities: readAuthorities(config.egress.caFile), log })
  const skills = closers.add(await openSkillRoom(config, db, blobs, mode, log))
  const search = createSearch(config.search, env, egress)
  if (search.unavailable !== undefined) log.warn(`web_search is not offered: ${search.unavailable}`)
  const mcp: McpOptions = {
    servers: config.mcp,
    credentials,
    unseal: vault.unseal,
    fetchWith: (terms) => createLibraryFetch(egress, terms),
    env,
  }
  const toolProviders = [
    createSandboxTools(),
    createSkillTools(skills.shelf),
    createWebSearch(search.service),
    createBrowserTools(() => browserParts(config, sandboxFacts())),
    createMcp(mcp),
  ]
  const facts = describeServer(toolProviders, catalogue, search, config, sandboxFacts)
  const budgets = closers.add(createBudgets({ db, now: Date.now, log, emit }))
  const parts: EngineParts = {
    db,
    hub: createHub(wakeups),
    blobs,
    buckets: createBuckets(config.files, env),
    fileTypes: config.files.types,
    catalogue,
    sandboxes: observeSandboxes(sandboxes, emit),
    egress,
    credentials,
    vault,
    toolProviders,
    mcpServers: new Set(Object.keys(config.mcp)),
    skills: { lookUp: skills.lookUp, mounts: skills.shelf.mounts },
    limits: config.limits,
    budgets,
    schemas: createSchemaChecks(),
    inside: ownFacts.inside,
    now: Date.now,
    lives,
    log,
    emit,
    onPoint,
  }
  const engine = closers.add(
    openEngine({
      parts,
      owner,
      slots: config.workerSlots,
      leaseMs: config.leaseS * 1_000,
      works,
      leads: nodes?.leads,
    }),
  )
  metrics.watch({
    queue: () => readQueue(db),
    webhooksPending: () => countPendingWebhooks(db),
    sandboxes: sandboxes.counts,
    connections: () => db.connections?.(),
    worker: () => ({ running: engine.running, slots: works === 'none' ? 0 : config.workerSlots }),
    models: () =>
      catalogue.names().map((name) => ({ name, resting: catalogue.get(name)?.health?.().state === 'resting' })),
  })

  // Signed addresses begin with how callers reach this server, which is only known when it listens on a port of its choice.
  let publicUrl = config.publicUrl
  const revisions = [createRevision20260520(config.limits)]
  const agents = createAgentStore({ db, defaultModel: catalogue.defaultName })
  const app = await createApp({
    config,
    revisions,
    engine,
    accounts,
    console: {
      ...createSignInDependencies(config, { db, accounts, budgets, secret, publicUrl: () => publicUrl!, log }),
      ...{ engine, agents, catalogue },
      mcpServers: mapValues(config.mcp, (server) => ('command' in server ? 'program' : 'address')),
      checkMcp: createMcpCheck(mcp),
      nodes: () => healthByNode(nodes?.living(), catalogue),
    },
    credentials,
    skills,
    agents,
    blobs,
    catalogue,
    facts,
    workers: nodes && (() => nodes.living().filter(({ role }) => role !== 'api').length),
    signer: createSigner({ publicUrl: () => publicUrl, secret }),
    rateLimits: createRateLimits(
      config.limits,
      db.dialect === 'postgres' ? createSharedCounter(db) : createMemoryCounter,
    ),
    metrics,
    trace: traces?.begin,
    emit,
    log,
  })
  closers.add(app)
  if (works === 'all') {
    webhooks = closers.add(
      openWebhooks({
        parts,
        secretOf: (projectId) => webhookSecret(secret, projectId),
        encode(interaction, revision) {
          const codec = revisions.find((each) => each.revision === revision) ?? revisions.at(-1)!
          return codec.webhooks.encodeEvent(interaction)
        },
      }),
    )
  }
  await nodes?.join(ownFacts, () => healthOf(catalogue))
  const greets = mode === 'serve' && config.role !== 'worker'
  return {
    engine,
    accounts,
    catalogue,
    database: { dialect: db.dialect, walled: db.walled },
    facts,
    search: search.description,
    nodes: nodes?.living() ?? [],
    firstKey: greets ? await makeFirstKey(accounts) : undefined,
    welcome: greets ? await makeWelcome(accounts, owner, async (id) => (await nodes?.lives(id)) ?? false) : undefined,
    async listen() {
      await app.listen({ host: config.host, port: config.port })
      if (config.metrics.port !== undefined) {
        closers.add(await openMetricsPort(metrics, { host: config.host, port: config.metrics.port }))
      }
      const { port } = app.server.address() as AddressInfo
      const scheme = config.tls ? 'https' : 'http'
      const url = `${scheme}://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`
      publicUrl ??= url
      return { url }
    },
    async close(graceMs) {
      // What runs may end, and be followed to its end, before anybody is cut off.
      await engine.close(graceMs).catch(() => {})
      return closers.close(0)
    },
  }
}

/** Asked anew each time: what the workers are may change. */
function describeServer(
  providers: readonly ToolProvider[],
  catalogue: Catalogue,
  search: SearchChoice,
  config: Config,
  sandboxFacts: () => SandboxFacts,
): ServerFacts {
  const tools = () => offeredTools(providers, catalogue)
  return {
    version: VERSION,
    get sandbox() {
      return sandboxFacts()
    },
    get tools() {
      return tools()
    },
    get missingTools() {
      const missing = TOOL_NAMES.filter((name) => !tools().includes(name))
      return missing.map((name) => ({ name, remedy: remedyFor(name, search) }))
    },
    get search() {
      return tools().includes('web_search') ? config.search.provider : undefined
    },
  }
}

/** What the console's own routes work with. */
/** Of the console, what has to do with people alone. */
function createSignInDependencies(
  { console: { signUp, oidc } }: Config,
  parts: Pick<ConsoleDependencies, 'accounts' | 'budgets' | 'publicUrl'> & {
    readonly db: Database
    readonly secret: string
    readonly log: Log
  },
): Pick<ConsoleDependencies, 'accounts' | 'budgets' | 'signIn' | 'joining' | 'log' | 'usage' | 'signUp' | 'publicUrl'> {
  const { db, accounts, budgets, publicUrl } = parts
  const provider = oidc.issuer === undefined ? undefined : (oidc as OidcOptions)
  const accountLog = createAccountLog(db, Date.now)
  const signIn = createSignIn({ ...parts, oidc: provider, onFailure: accountLog.signInFailed })
  const joining = createJoining({ db, ...accounts, signIn, now: Date.now })
  const usage: ConsoleDependencies['usage'] = (question) => reportUsage(db, question)
  return { accounts, signIn, joining, log: accountLog, usage, budgets, signUp, publicUrl }
}

function mapValues<V, T>(of: Readonly<Record<string, V>>, change: (value: V) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, change(value)]))
}

function offeredTools(providers: readonly ToolProvider[], catalogue: Catalogue): readonly ToolName[] {
  const bySearchingModels = catalogue.describe().some(({ searches }) => searches) ? (['web_search'] as const) : []
  return [...providers.flatMap(({ offers }) => offers), ...bySearchingModels]
}

/** What the operator can do about a tool that is not there: of these two alone that can be. */
function remedyFor(name: ToolName, search: SearchChoice): string {
  if (name === 'browser')
    return 'There is no Chromium inside: apt-get install -y chromium-headless-shell (or chromium) brings it; a tree by script/rootfs has it.'
  if (search.unavailable !== undefined) return `${search.unavailable}.`
  if (search.byModel)
    return 'No model of this server searches by its provider’s own means: name a service in `search.provider`.'
  return 'Name a service in `search.provider`: searxng, brave, tavily, exa, or model.'
}

/** Undefined where there is no Chromium. */
function browserParts({ browser, limits }: Config, facts: SandboxFacts): BrowserParts | undefined {
  const executable = browser.executable ?? facts.browser
  return executable === undefined ? undefined : { ...browser, executable, ceiling: limits.network }
}

async function openDatabase({ databaseUrl, databasePool, dataDir }: Config, log: Log, emit?: Emit): Promise<Database> {
  if (databaseUrl === undefined) return openSqlite(join(dataDir, 'errand.db'), emit)
  const { openPostgres } = await import('./store/postgres/postgres.ts')
  return openPostgres(databaseUrl, { poolSize: databasePool, log })
}

async function openWakeups({ databaseUrl, databaseListenUrl = databaseUrl }: Config, log: Log): Promise<Wakeups> {
  if (databaseListenUrl === undefined) return NO_WAKEUPS
  const { openPostgresWakeups } = await import('./store/postgres/wakeups.ts')
  return openPostgresWakeups(databaseListenUrl, { log })
}

function openBlobs(location: Config['blobs']): Promise<Blobs> {
  return location.kind === 'disk' ? openDiskBlobs(location.directory) : openS3Blobs(location)
}

function openSkillRoom(
  { dataDir, skillsDir, limits }: Config,
  db: Database,
  blobs: Blobs,
  mode: OpenOptions['mode'],
  log: OpenOptions['log'],
) {
  return openSkills({
    db,
    blobs,
    workDirectory: join(dataDir, 'skills-work'),
    serverDirectory: skillsDir,
    limits,
    longestRunMs: (limits.maxTurnDuration.max + limits.queueWaitS) * 1_000,
    stays: mode === 'serve',
    log,
  })
}

interface Closers {
  /** Remembers what must be closed, and gives it back. */
  readonly add: <T extends { close(graceMs: number): Promise<unknown> }>(part: T) => T
  /** Closes the newest first, whatever fails. Returns whether nothing did; logs what did. */
  readonly close: (graceMs: number) => Promise<boolean>
}

function createClosers(log: Log): Closers {
  const open: { close(graceMs: number): Promise<unknown> }[] = []
  let closing: Promise<boolean> | undefined
  async function closeAll(graceMs: number): Promise<boolean> {
    let inOrder = true
    for (const part of open.reverse()) {
      try {
        await part.close(graceMs)
      } catch (error) {
        inOrder = false
        log.error({ err: error }, 'a part of the server could not be closed')
      }
    }
    return inOrder
  }
  return {
    add(part) {
      open.push(part)
      return part
    },
    close(graceMs) {
      closing ??= closeAll(graceMs)
      return closing
    },
  }
}
