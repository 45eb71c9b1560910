/**
 * The only place where adapters are built; src/compose/ has one file for each room. Parts are opened in order and closed in
 * reverse order.
 */
import type { Accounts } from './accounts/accounts.ts'
import { makeFirstKey, makeWelcome, type Welcome } from './accounts/first-start.ts'
import { openAccounts } from './accounts/open-accounts.ts'
import { loadSecret } from './accounts/secret.ts'
import { createAccountParts } from './compose/accounts.ts'
import { type Closers, createClosers } from './compose/closers.ts'
import type { ComposeContext, OpenOptions } from './compose/context.ts'
import { createEngineDependencies, openEngineWith, openWebhookDelivery, watchEngine } from './compose/engine.ts'
import { openBlobs, openSkillRoom } from './compose/files.ts'
import { openHttp } from './compose/http.ts'
import { openModels } from './compose/models.ts'
import { describeServer } from './compose/server-facts.ts'
import { openDatabase, openStore, type Store } from './compose/store.ts'
import { openTelemetry } from './compose/telemetry.ts'
import { createTools } from './compose/tools.ts'
import { warnings } from './config/nodes.ts'
import type { Config } from './config.ts'
import { readAuthorities } from './egress/authorities.ts'
import { createEgress } from './egress/create-egress.ts'
import type { Engine } from './engine/engine.ts'
import { healthOf } from './engine/queue/model-health.ts'
import type { Nodes } from './engine/queue/nodes.ts'
import type { ServerFacts } from './http/server-facts.ts'
import { createRevision20260520 } from './http/wire/2026-05-20/codec.ts'
import type { Catalogue } from './models/port.ts'
import type { Database } from './store/port.ts'
import { listRemovals, type Removal } from './store/removals.ts'
import type { Log } from './telemetry/log.ts'

/** Accounts and audit records only: no sandboxes and no models, so it opens quickly. */
export interface Admin {
  readonly accounts: Accounts
  /** Lists removed interactions, the latest removal first. */
  removals(limit: number): Promise<readonly Removal[]>
  close(): Promise<void>
}

export interface Errand {
  readonly engine: Engine
  readonly accounts: Accounts
  readonly catalogue: Catalogue
  readonly database: Pick<Database, 'dialect' | 'hasRowSecurity'>
  /** Its sandboxes (an api process: those of its workers), its tools, and how to add missing ones. */
  readonly facts: ServerFacts
  /** The service behind `web_search`, or why there is none. */
  readonly search: string
  /** Nodes on the same Postgres database, including this one if it serves. */
  readonly nodes: ReturnType<Nodes['living']>
  /** API key that was created because there was none. Stored only as a hash, so show it now. */
  readonly firstKey: string | undefined
  /** One-time link for the first owner. Undefined if there is an owner, and on workers. */
  readonly welcome: Welcome | undefined
  /** Starts to accept HTTP connections; call once. Rejects as node's `listen` does. */
  listen(): Promise<{ readonly url: string }>
  /**
   * Stops claiming work, waits up to `graceMs` for running interactions, and closes everything. Returns whether every part
   * could be closed; the log has the reasons. Never rejects. Idempotent.
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
    // The failure may have come before the sandboxes were registered with the closers.
    await (await options.sandboxes.opened.catch(() => undefined))?.close()
    throw error
  }
}

async function build(config: Config, options: OpenOptions, closers: Closers): Promise<Errand> {
  const { mode, log } = options
  const telemetry = await openTelemetry(options, closers)
  const works = config.role === 'api' ? 'none' : mode === 'one-shot' ? 'own' : 'all'
  const context: ComposeContext = { ...options, config, works, emit: telemetry.emit, closers }
  for (const warning of warnings(config)) log.warn(warning)
  const secret = loadSecret(config.dataDir, config.secret)
  const store = await openStore(context)
  const { db, nodes } = store
  const blobs = closers.add(await openBlobs(config.blobs))
  const accountParts = createAccountParts(db, secret)
  const [catalogue, sandboxes] = await Promise.all([openModels(context), options.sandboxes.opened.then(closers.add)])
  const ownFacts = await sandboxes.facts()
  const sandboxFacts = () => (works === 'none' ? nodes?.workersFacts() : undefined) ?? ownFacts
  const egress = createEgress({ ...config.egress, authorities: readAuthorities(config.egress.caFile), log })
  const skills = await openSkillRoom(context, db, blobs)
  const tools = createTools(context, { egress, skills, ...accountParts, sandboxFacts })
  const facts = describeServer(tools, catalogue, config, sandboxFacts)
  const parts = createEngineDependencies(context, {
    ...accountParts,
    store,
    blobs,
    catalogue,
    sandboxes,
    inside: ownFacts.inside,
    egress,
    skills,
    toolProviders: tools.providers,
  })
  const engine = openEngineWith(context, parts, store)
  watchEngine(context, telemetry, engine, { db, sandboxes, catalogue })
  const revisions = [createRevision20260520(config.limits)]
  const rooms = { ...accountParts, engine, parts, store, skills, tools, telemetry, facts, revisions, secret }
  const { listen } = await openHttp(context, rooms)
  openWebhookDelivery(context, telemetry, parts, revisions, secret)
  await nodes?.join(ownFacts, () => healthOf(catalogue))
  return {
    engine,
    accounts: accountParts.accounts,
    catalogue,
    database: { dialect: db.dialect, hasRowSecurity: db.hasRowSecurity },
    facts,
    search: tools.search.description,
    nodes: nodes?.living() ?? [],
    ...(await greet(context, accountParts.accounts, store)),
    listen,
    async close(graceMs) {
      // Callers may follow running interactions to their end before connections are closed.
      await engine.close(graceMs).catch(() => {})
      return closers.close(0)
    },
  }
}

/** The first key and the welcome link, if this is the first start of a server. */
async function greet(
  { mode, config }: ComposeContext,
  accounts: Accounts,
  { owner, nodes }: Store,
): Promise<Pick<Errand, 'firstKey' | 'welcome'>> {
  if (mode !== 'serve' || config.role === 'worker') return { firstKey: undefined, welcome: undefined }
  const firstKey = await makeFirstKey(accounts)
  const welcome = await makeWelcome(accounts, owner, async (id) => (await nodes?.lives(id)) ?? false)
  return { firstKey, welcome }
}
