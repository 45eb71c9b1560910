/**
 * A real Errand server for a test: `errand serve` in its own process, on a free loopback port, with its own data
 * directory, which is removed at the end. Tests use it over HTTP.
 *
 *     const server = await startServer({ provider })          // models `fake` and svc-* answer from the fake provider
 *     const { status, body } = await server.post('/v1beta/interactions', { instruction: 'hello' })
 *     await server.stop()
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { createDatabaseIn } from './cluster.ts'
import type { ModelProvider } from './model-provider/serve.ts'
import { readSse, type WireEvent } from './sse.ts'
import { lookInto, type Stored } from './stored.ts'

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname
/** Node's flags, from the first line of the entry point. */
const FLAGS = / node (.*)/.exec(readFileSync(MAIN, 'utf8'))![1]!.split(' ')
const START_TIMEOUT_MS = 60_000

export interface ServerOptions {
  readonly provider?: Pick<ModelProvider<never>, 'model' | 'env'>
  /** Settings for errand.yaml. They override the test defaults. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  /** The data directory of an earlier server, to restart on. It is not removed at the end. */
  readonly dataDir?: string
  /** The key of the earlier server, or of another one on the same database. */
  readonly key?: string
  /**
   * Address of a Postgres database. Default: SQLite in the data directory; in the project `postgres`, a new database.
   */
  readonly database?: string
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Parsed body if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field; assertions check its type.
  readonly body: any
  readonly text: string
}

type HeaderMap = Readonly<Record<string, string>>

export interface Stream {
  readonly status: number
  readonly headers: Headers
  readonly events: AsyncGenerator<WireEvent>
  /** Reads all events until the end. */
  all(): Promise<WireEvent[]>
  /** Disconnects, like a client that loses its connection. */
  drop(): void
}

export interface Server {
  readonly url: string
  readonly key: string
  readonly dataDir: string
  readonly process: ChildProcess
  /** Everything printed on stdout and stderr. */
  output(): string
  readonly stored: Stored
  request(method: string, path: string, body?: unknown, headers?: HeaderMap): Promise<Answer>
  get(path: string, headers?: HeaderMap): Promise<Answer>
  post(path: string, body?: unknown, headers?: HeaderMap): Promise<Answer>
  /** Opens a stream by POST, or by GET if there is no body. */
  stream(path: string, body?: unknown, headers?: HeaderMap): Promise<Stream>
  /** Runs the command line with the same data directory and configuration. */
  errand(args: readonly string[], input?: string): Promise<{ code: number; stdout: string; stderr: string }>
  /** Creates a key in that project with the command line. */
  createKey(project: string): Promise<string>
  /** Sends SIGTERM or another signal. Resolves with the exit code when the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** In the project `postgres`: the database of each data directory, for a server that restarts on it. */
const databases = new Map<string, string>()

async function databaseFor(dataDir: string): Promise<string | undefined> {
  // Benches also start servers, outside vitest.
  const cluster = process.env.VITEST ? (await import('vitest')).inject('postgres') : undefined
  if (cluster === undefined) return undefined
  const database = databases.get(dataDir) ?? (await createDatabaseIn(cluster))
  databases.set(dataDir, database)
  return database
}

/**
 * The heap limit that docs/operating.md names. Without it V8 may delay garbage collection until hundreds of megabytes
 * are unused; with it, a server's memory shows what it really uses.
 */
export const BOUNDED_HEAP = { NODE_OPTIONS: '--max-old-space-size=256' }

export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'errand-test-')))
  const database = options.database ?? (await databaseFor(dataDir))
  const configFile = join(dataDir, 'errand.yaml')
  if (!options.dataDir || options.config) await writeFile(configFile, stringify(configuration(options)))
  const env = cleanEnv({
    ERRAND_CONFIG: configFile,
    ERRAND_DATA_DIR: dataDir,
    ERRAND_PORT: '0',
    ...nodeEnv(database),
    ...options.provider?.env,
    ...options.env,
  })
  const child = spawn(process.execPath, [...FLAGS, MAIN, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))

  const url = await waitFor(
    () => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0],
    exited,
    () => output,
  )
  const key =
    options.key ??
    (await waitFor(
      () => /errand_sk_\w{38}/.exec(output)?.[0],
      exited,
      () => output,
    ))

  async function request(method: string, path: string, body?: unknown, headers: HeaderMap = {}): Promise<Answer> {
    const response = await fetch(url + path, {
      method,
      headers: { ...auth(key), ...(body === undefined ? {} : JSON_TYPE), ...headers },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: parse(text) }
  }

  return {
    url,
    key,
    dataDir,
    process: child,
    output: () => output,
    stored: lookInto(dataDir, database),
    request,
    get: (path, headers) => request('GET', path, undefined, headers),
    post: (path, body, headers) => request('POST', path, body, headers),
    async stream(path, body, headers = {}) {
      const abort = new AbortController()
      const response = await fetch(url + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { ...auth(key), accept: 'text/event-stream', ...(body === undefined ? {} : JSON_TYPE), ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: abort.signal,
      })
      const events = readSse(response)
      return {
        status: response.status,
        headers: response.headers,
        events,
        async all() {
          const read: WireEvent[] = []
          for await (const event of events) read.push(event)
          return read
        },
        drop: () => abort.abort(),
      }
    },
    errand: (args, input) => runCommand(args, env, input),
    async createKey(project) {
      const { code, stdout, stderr } = await runCommand(
        ['keys', 'create', '--name', project, '--project', project],
        env,
      )
      assert.equal(code, 0, stderr)
      return stdout.trim()
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      const code = await exited
      if (!options.dataDir && signal === 'SIGTERM') await rm(dataDir, { recursive: true, force: true })
      return code
    },
  }
}

export interface WireError {
  readonly code: string
  readonly message: string
  readonly status: number
  readonly retryable: boolean
  readonly param?: string
  readonly details?: unknown
  readonly interactionId?: string
  readonly supported?: readonly string[]
}

const ERROR_FIELDS = ['code', 'message', 'status', 'retryable', 'param', 'details', 'interactionId', 'supported']

/** The error of a refused request. Checks the fields that every error has (docs/errors.md). */
export function errorOf({ status, headers, body, text }: Answer): WireError {
  assert.match(headers.get('content-type') ?? '', /^application\/json\b/, `${status} ${text}`)
  assert.deepEqual(Object.keys(body ?? {}).sort(), ['error', 'requestId'], `${status} ${text}`)
  const { error, requestId } = body
  const stranger = Object.keys(error).find((key) => !ERROR_FIELDS.includes(key))
  assert.equal(stranger, undefined, text)
  assert.equal(error.status, status, text)
  assert.match(error.code, /^[a-z_]+$/, text)
  assert.match(error.message, /\S/, text)
  assert.equal(typeof error.retryable, 'boolean', text)
  assert.match(requestId, /^\S+$/, text)
  assert.equal(headers.get('x-request-id'), requestId)
  if (status === 500) assert.equal(headers.get('retry-after'), '5')
  if (status === 429 || status === 503) assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/, text)
  return error
}

const JSON_TYPE = { 'content-type': 'application/json' }

function auth(key: string): HeaderMap {
  return { 'x-svc-api-key': key }
}

function configuration({ provider, config }: ServerOptions): object {
  const models = provider && { 'svc-3.5-flash': provider.model, 'svc-3.1-pro': provider.model }
  return { ...(models && { models }), sandbox: { pool: 0 }, ...config }
}

/** Settings that all nodes on a database share. */
function nodeEnv(database: string | undefined): HeaderMap {
  return database === undefined
    ? {}
    : { ERRAND_DATABASE_URL: database, ERRAND_SECRET: 'the secret of all nodes of a test' }
}

/** Compiled modules, shared by all servers: the tests start more than a thousand. It is where the entry point keeps its own. */
const COMPILED = new URL('../../node_modules/.cache/errand', import.meta.url).pathname

/** Environment variables of a server, without the model keys and settings of this machine. */
function cleanEnv(extra: HeaderMap): NodeJS.ProcessEnv {
  const { PATH, HOME, LANG, TMPDIR } = process.env
  return { PATH, HOME, LANG, TMPDIR, NO_COLOR: '1', NODE_COMPILE_CACHE: COMPILED, ...extra }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function waitFor<T>(look: () => T | undefined, exited: Promise<number | null>, said: () => string): Promise<T> {
  let gone = false
  void exited.then(() => {
    gone = true
  })
  for (const until = Date.now() + START_TIMEOUT_MS; Date.now() < until; ) {
    const found = look()
    if (found !== undefined) return found
    if (gone) break
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`errand serve ${gone ? 'ended' : 'did not come up'}:\n${said()}`)
}

export function runCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  input = '',
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? -1, stdout, stderr }))
    child.stdin.end(input)
  })
}
