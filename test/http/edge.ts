/**
 * The HTTP layer alone: real routes, codecs, limits and agent store, over an engine whose event log the test writes.
 * For behavior that is hard to reach with a real engine: the order of checks, a stalled reader, the exact limit of a
 * window.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { createAccountLog } from '../../src/accounts/account-log.ts'
import type { Accounts, Caller } from '../../src/accounts/accounts.ts'
import { createCredentials } from '../../src/accounts/create-credentials.ts'
import { createSignIn } from '../../src/accounts/create-sign-in.ts'
import { createJoining } from '../../src/accounts/joining.ts'
import { openAccounts } from '../../src/accounts/open-accounts.ts'
import { createVault } from '../../src/accounts/vault.ts'
import { openDiskBlobs } from '../../src/blobs/disk.ts'
import type { Config } from '../../src/config.ts'
import { ErrandError } from '../../src/domain/errors.ts'
import { decodeEvent, encodeEvent, type RunEvent, type StoredEvent } from '../../src/domain/event.ts'
import { createInteractionFold } from '../../src/domain/fold.ts'
import { newId } from '../../src/domain/ids.ts'
import type { Interaction, RunRequest, StoredFile } from '../../src/domain/interaction.ts'
import { DEFAULT_LIMITS, type Limits } from '../../src/domain/limits.ts'
import type { Usage } from '../../src/domain/usage.ts'
import { type Budgets, createBudgets } from '../../src/engine/budgets.ts'
import type { Engine, SubmitOptions } from '../../src/engine/engine.ts'
import { type AppDeps, createApp } from '../../src/http/app.ts'
import { createRateLimits } from '../../src/http/gate/rate-limits.ts'
import { createSigner } from '../../src/http/response/signed-urls.ts'
import type { Codec } from '../../src/http/wire/codec.ts'
import { openSkills } from '../../src/skills/open-skills.ts'
import { createAgentStore } from '../../src/store/agents.ts'
import type { Database } from '../../src/store/port.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { reportUsage } from '../../src/store/usage-report.ts'

export const KEY = 'good-key'
export const OFF_KEY = 'key-of-an-account-that-is-off'
export const OTHER_KEY = 'key-of-another-project'

const CALLERS: Readonly<Record<string, Caller>> = {
  [KEY]: { keyId: 'key_1', projectId: 'prj_1', accountId: 'acc_1', enabled: true, scope: 'all' },
  [OTHER_KEY]: { keyId: 'key_2', projectId: 'prj_2', accountId: 'acc_1', enabled: true, scope: 'all' },
  [OFF_KEY]: { keyId: 'key_3', projectId: 'prj_3', accountId: 'acc_2', enabled: false, scope: 'all' },
}

const MODEL = {
  provider: 'openai-compatible',
  model: 'llama',
  source: 'Ollama at 10.1.2.3:11434',
  vision: true,
  documents: false,
  demo: false,
}

const FACTS: AppDeps['facts'] = {
  version: '1.2.3',
  sandbox: {
    driver: 'bubblewrap',
    enforced: ['network: none'],
    notEnforced: ['kernel: shared with the host'],
    probes: [
      { name: 'fork bomb', refused: true },
      { name: 'user namespaces', refused: false, detail: 'one could be made' },
    ],
    inside: 'Python 3.11',
    browser: '/srv/private/chromium',
  },
  tools: ['code_execution', 'web_search', 'web_search'],
  missingTools: [{ name: 'browser', remedy: 'Install one.' }],
  search: 'searxng',
}

const USAGE: Usage = {
  input_tokens: 10,
  output_tokens: 5,
  total_tokens: 15,
  duration_ms: 7,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  model_calls: 1,
  tool_calls: 1,
  sandbox_ms: 0,
}

/** A run whose event log the test writes. */
export interface ScriptedRun {
  readonly id: string
  readonly projectId: string
  readonly request: RunRequest
  readonly options: SubmitOptions
  readonly log: StoredEvent[]
  cancelled: boolean
  files: StoredFile[]
  write(...events: RunEvent[]): void
  end(status?: 'completed' | 'failed' | 'cancelled'): void
}

export interface ScriptedEngine extends Engine {
  readonly runs: ScriptedRun[]
  /** Called when a run is submitted. Default: writes the answer "hi" and completes the run. */
  onSubmit: (run: ScriptedRun) => void
}

function completedEvent(interactionId: string, status: 'completed' | 'failed' | 'cancelled'): RunEvent {
  return { type: 'completed', interactionId, status, usage: USAGE }
}

export function createScriptedEngine(): ScriptedEngine {
  const runs: ScriptedRun[] = []
  const waiting = new Set<() => void>()
  const find = (projectId: string, id: string) => runs.find((run) => run.id === id && run.projectId === projectId)

  function createRun(projectId: string, request: RunRequest, options: SubmitOptions): ScriptedRun {
    const id = newId('int')
    return {
      id,
      projectId,
      request,
      options,
      log: [],
      cancelled: false,
      files: [],
      write(...events) {
        for (const event of events) {
          this.log.push({ seq: this.log.length + 1, type: event.type, data: encodeEvent(event) })
        }
        for (const wake of [...waiting]) wake()
      },
      end(status = 'completed') {
        this.write(completedEvent(id, status))
      },
    }
  }

  return {
    runs,
    onSubmit(run) {
      run.write({ type: 'partial_output', text: 'hi' })
      run.end()
    },
    async submit(projectId, request, options) {
      const key = options.idempotency?.key
      const earlier = key === undefined ? undefined : runs.find((run) => run.options.idempotency?.key === key)
      if (earlier) {
        if (earlier.options.idempotency?.fingerprint === options.idempotency?.fingerprint) {
          return { interactionId: earlier.id, joined: true }
        }
        throw new ErrandError('idempotency_mismatch', 'The key was used with another body.')
      }
      if (request.agentId === 'missing') throw new ErrandError('not_found', 'There is no agent "missing".')
      const run = createRun(projectId, request, options)
      runs.push(run)
      run.write({ type: 'stage', stage: 'queued' })
      this.onSubmit(run)
      return { interactionId: run.id, joined: false }
    },
    async *follow(_projectId, id, after, signal) {
      const run = runs.find((candidate) => candidate.id === id)!
      for (let next = after; !signal.aborted; ) {
        if (next > 0 && run.log[next - 1]?.type === 'completed') return
        const batch = run.log.slice(next)
        if (batch.length > 0) {
          yield batch
          next += batch.length
          if (batch.at(-1)?.type === 'completed') return
        } else {
          await new Promise<void>((resolve) => {
            const wake = () => {
              waiting.delete(wake)
              signal.removeEventListener('abort', wake)
              resolve()
            }
            waiting.add(wake)
            signal.addEventListener('abort', wake)
          })
        }
      }
    },
    async waitForEnd(projectId, id, signal) {
      for await (const _batch of this.follow(projectId, id, 0, signal)) {
        // Delivers all further events until the end.
      }
    },
    async find(projectId, id) {
      return (await this.get(projectId, id))?.interaction
    },
    async get(projectId, id) {
      const run = find(projectId, id)
      if (!run) return undefined
      const fold = createInteractionFold()
      for (const event of run.log) fold.add(decodeEvent(event))
      const view = fold.view()
      return { interaction: toInteraction(run, view.end?.status, view.error), view, usage: USAGE }
    },
    async events(projectId, id) {
      return find(projectId, id) && { events: [], next: undefined }
    },
    async audit(projectId, id) {
      return find(projectId, id) && { entries: [], next: undefined }
    },
    async list(projectId, { pageSize, after, order }) {
      const own = runs.filter((run) => run.projectId === projectId)
      if (order === 'desc') own.reverse()
      const start = after === undefined ? 0 : own.findIndex((run) => run.id === after) + 1
      const page = own.slice(start, start + pageSize)
      return {
        interactions: page.map((run) => ({ interaction: toInteraction(run, undefined, undefined), usage: USAGE })),
        next: start + pageSize < own.length ? page.at(-1)?.id : undefined,
      }
    },
    async cancel(projectId, id) {
      const run = find(projectId, id)
      if (!run) throw new ErrandError('not_found', `There is no interaction ${id}.`)
      if (!run.cancelled) run.end('cancelled')
      run.cancelled = true
    },
    async approve() {},
    webhookLog: async () => undefined,
    webhooks: async () => ({ webhooks: [], next: undefined }),
    async remove(projectId, id) {
      const run = find(projectId, id)
      if (!run) throw new ErrandError('not_found', `There is no interaction ${id}.`)
      runs.splice(runs.indexOf(run), 1)
    },
    ready: async () => true,
    close: async () => {},
  }
}

function toInteraction(
  run: ScriptedRun,
  status: Interaction['status'] = 'running',
  error: Interaction['error'],
): Interaction {
  const { request } = run
  return {
    id: run.id,
    projectId: run.projectId,
    keyId: 'key_scripted',
    status,
    stage: 'working',
    labels: request.labels,
    createdAt: Date.UTC(2026, 4, 20),
    endedAt: status === 'running' ? undefined : Date.UTC(2026, 4, 20, 0, 0, 1),
    error,
    lastSeq: run.log.length,
    outputFiles: run.files,
    spec: {
      instruction: request.instruction,
      model: request.settings.model ?? 'svc-3.5-flash',
      tools: [],
      skills: [],
      mcp: [],
      network: 'disabled',
      policy: {
        maxTurnDuration: 600,
        maxOutputTokens: 65_536,
        maxToolDuration: 60,
        sandbox: { memoryMiB: 512, cpus: 0.5, pids: 128, workspaceMiB: 256, files: 50_000, outputBytes: 65_536 },
      },
      inputFiles: [],
      onDisconnect: request.onDisconnect,
    },
  }
}

const ACCOUNTS = {
  authenticate: async (key: string) => CALLERS[key],
} as Accounts

export interface Edge {
  readonly app: FastifyInstance
  readonly engine: ScriptedEngine
  /** Contents of the blob store, by key. */
  readonly blobs: Map<string, string>
  /** Sends a request with a valid key. An object body is sent as JSON. */
  call(method: string, url: string, body?: unknown, headers?: Record<string, string>): Promise<EdgeAnswer>
  /** Starts to listen on first use. Returns the base URL. */
  listen(): Promise<string>
  close(): Promise<void>
}

export interface EdgeAnswer {
  readonly status: number
  readonly headers: Record<string, string | string[] | number | undefined>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field of an answer, and assertions check it.
  readonly body: any
}

export interface EdgeOptions {
  readonly limits?: Partial<Limits>
  readonly revisions?: (limits: Limits) => readonly Codec[]
  readonly clock?: () => number
  readonly deps?: Partial<AppDeps>
}

function createTestConsole(
  db: Database,
  budgets: Budgets,
  rest: Pick<AppDeps['console'], 'engine' | 'agents' | 'catalogue'>,
): AppDeps['console'] {
  const parts = {
    db,
    secret: 's'.repeat(32),
    publicUrl: () => 'https://errand.example',
    log: pino({ level: 'silent' }),
  }
  const accounts = openAccounts(parts)
  const log = createAccountLog(db, Date.now)
  const signIn = createSignIn({ ...parts, onFailure: log.signInFailed })
  const joining = createJoining({ db, ...accounts, signIn, now: Date.now })
  const usage: AppDeps['console']['usage'] = (question) => reportUsage(db, question)
  return {
    ...{ accounts, signIn, joining, log, usage, budgets, ...rest },
    ...{ signUp: false, publicUrl: parts.publicUrl, mcpServers: {} },
    checkMcp: async () => ({ tools: [], problems: [], tookMs: 0 }),
    nodes: () => [{ name: null, health: {} }],
  }
}

export async function openEdge(options: EdgeOptions = {}): Promise<Edge> {
  const dir = await mkdtemp(join(tmpdir(), 'errand-edge-'))
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const engine = createScriptedEngine()
  const db = await openSqlite(join(dir, 'errand.db'))
  const blobs = new Map<string, string>()
  const names = ['svc-3.5-flash', 'svc-3.1-pro']
  const skills = await openSkills({
    db,
    blobs: await openDiskBlobs(join(dir, 'blobs')),
    workDirectory: join(dir, 'skills-work'),
    serverDirectory: join(dir, 'skills'),
    limits,
    longestRunMs: 0,
    stays: false,
    log: pino({ level: 'silent' }),
  })
  const agents = createAgentStore({ db, defaultModel: 'svc-3.5-flash' })
  const catalogue = {
    get: (name: string) => (names.includes(name) ? ({ name } as never) : undefined),
    names: () => names,
    defaultName: 'svc-3.5-flash',
    describe: () => names.map((name) => ({ ...MODEL, name })),
    close: async () => {},
  } as unknown as AppDeps['catalogue']
  const budgets = createBudgets({ db, now: Date.now, log: pino({ level: 'silent' }), emit: () => {} })
  const app = await createApp({
    emit: () => {},
    config: {
      limits,
      trustedProxies: [],
      tls: undefined,
      metrics: {},
      mcp: {},
    } as unknown as Config,
    engine,
    accounts: ACCOUNTS,
    console: createTestConsole(db, budgets, { engine, agents, catalogue }),
    credentials: createCredentials({ db, vault: createVault('secret') }),
    agents,
    skills,
    blobs: {
      put: async () => {},
      get: async () => undefined,
      open: async (key) => (blobs.has(key) ? Readable.from([Buffer.from(blobs.get(key) ?? '')]) : undefined),
      removeAll: async () => {},
      owners: async function* () {},
      close: async () => {},
    },
    catalogue,
    facts: FACTS,
    signer: createSigner({ publicUrl: () => 'https://errand.example', secret: 'secret', clock: options.clock }),
    rateLimits: createRateLimits(limits),
    log: pino({ level: 'silent' }),
    revisions: options.revisions?.(limits),
    ...options.deps,
  })
  let address: Promise<string> | undefined
  return {
    app,
    engine,
    blobs,
    async call(method, url, body, headers = {}) {
      const request: InjectOptions = {
        method: method as 'GET',
        url,
        headers: {
          'x-svc-api-key': KEY,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        payload: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
      }
      const answer = await app.inject(request)
      const json = String(answer.headers['content-type']).startsWith('application/json')
      return {
        status: answer.statusCode,
        headers: answer.headers,
        text: answer.body,
        body: json && answer.body !== '' ? answer.json() : undefined,
      }
    },
    listen() {
      address ??= app.listen({ host: '127.0.0.1', port: 0 }).then(() => {
        return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
      })
      return address
    },
    async close() {
      await app.close()
      await budgets.close()
      await db.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
