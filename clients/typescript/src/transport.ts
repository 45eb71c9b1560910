/** One way to the server for all calls: identity, time-outs, retries, errors. */
import { apiError } from './api-error.ts'
import { AbortedError, ConnectionError, ErrandError, TimeoutError } from './errors.ts'

const REVISION = '2026-05-20'
const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_MAX_RETRIES = 4
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8_000

export interface ClientOptions {
  /** Of a project. Default: the environment's `ERRAND_API_KEY`. */
  readonly apiKey?: string
  /** Default: the environment's `ERRAND_BASE_URL`, else `http://127.0.0.1:8080`. */
  readonly baseUrl?: string
  /**
   * For the answer to one request, milliseconds; default 60,000. Of streams and files, for it to begin. A run may take
   * longer: it is waited for in several requests.
   */
  readonly timeoutMs?: number
  /** Further tries of a request after trouble that may pass; default 4. */
  readonly maxRetries?: number
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Instead of the global `fetch`. */
  readonly fetch?: typeof fetch
}

export interface RequestOptions {
  /** Gives up waiting; what runs on the server goes on, unless the call says otherwise. */
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly maxRetries?: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below the base address; or a whole address, which is then sent no key. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** Sent as JSON; bytes as they are, with `type`. */
  readonly body?: unknown
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Whether the same request twice does no more than once. Where not, it is tried again only after an answer that says
   * that nothing was done (429, 503).
   */
  readonly repeatable: boolean
  /** The answer may stay away for longer than the time-out: what was asked to be waited for, milliseconds. */
  readonly waitMs?: number
}

export interface Transport {
  /** The answer, once it is a good one. Throws ApiError, ConnectionError, TimeoutError, AbortedError. */
  send(call: Call, options?: RequestOptions): Promise<Response>
  /** The same, as JSON. */
  json<T>(call: Call, options?: RequestOptions): Promise<T>
  /** Waits before try number `tries` (from 1) of anything: growing, by chance, never less than `atLeastMs`. */
  pause(tries: number, atLeastMs: number, signal: AbortSignal | undefined): Promise<void>
  readonly maxRetries: number
}

export function createTransport(options: ClientOptions): Transport {
  const apiKey = options.apiKey ?? fromEnvironment('ERRAND_API_KEY')
  if (!apiKey) throw new ErrandError('There is no API key: pass `apiKey`, or set ERRAND_API_KEY in the environment.')
  const base = (options.baseUrl ?? fromEnvironment('ERRAND_BASE_URL') ?? 'http://127.0.0.1:8080').replace(/\/+$/, '')
  const { fetch: doFetch = fetch, maxRetries = DEFAULT_MAX_RETRIES, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const identity = { 'x-svc-api-key': apiKey, 'Api-Revision': REVISION, ...options.headers }

  async function sendOnce<T>(call: Call, { signal, headers, ...own }: RequestOptions, read: Reading<T>): Promise<T> {
    const allowedMs = (own.timeoutMs ?? timeoutMs) + (call.waitMs ?? 0)
    const timeout = new AbortController()
    const timer = setTimeout(() => timeout.abort(), allowedMs)
    const whole = /^https?:/.test(call.path)
    const address = addressOf(whole ? call.path : base + call.path, call.query)
    const [body, type] = encodeBody(call)
    let reached = false
    try {
      const response = await doFetch(address, {
        method: call.method,
        headers: { ...(whole ? {} : identity), ...(type && { 'Content-Type': type }), ...call.headers, ...headers },
        body,
        signal: signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal,
      })
      reached = true
      return await read(response)
    } catch (error) {
      if (signal?.aborted) throw aborted(signal)
      if (timeout.signal.aborted)
        throw new TimeoutError(`${originOf(address)} did not answer within ${allowedMs / 1000} s.`)
      if (error instanceof ErrandError) throw error
      const what = reached ? `The connection to ${originOf(address)} broke` : `${originOf(address)} can't be reached`
      throw new ConnectionError(`${what}: ${reasonOf(error)}.`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  async function send<T>(call: Call, request: RequestOptions, read: Reading<T>): Promise<T> {
    const most = request.maxRetries ?? maxRetries
    for (let tries = 1; ; tries++) {
      if (request.signal?.aborted) throw aborted(request.signal)
      const outcome = await attempt(call, request, read)
      if (!(outcome instanceof Trouble)) return outcome
      const { error, again, waitMs } = outcome
      if (!again || tries > most) throw error
      await pause(tries, waitMs, request.signal)
    }
  }

  async function attempt<T>(call: Call, request: RequestOptions, read: Reading<T>): Promise<T | Trouble> {
    try {
      return await sendOnce<T | Trouble>(call, request, async (response) =>
        response.ok ? read(response) : refusal(call, response),
      )
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error
      return new Trouble(error, call.repeatable, 0)
    }
  }

  return {
    send: (call, request = {}) => send(call, request, async (response) => response),
    async json<T>(call: Call, request: RequestOptions = {}) {
      const value = parse(await send(call, request, (response) => response.text()))
      if (value === undefined) throw notOurs()
      return value as T
    },
    pause,
    maxRetries,
  }
}

/** What is made of a good answer, within the time that one has. */
type Reading<T> = (response: Response) => Promise<T>

/** Something else answers there: another program, a proxy's page for signing in. */
export function notOurs(): ConnectionError {
  return new ConnectionError('The response is not from an Errand server. Check the base address.')
}

class Trouble {
  readonly error: Error
  readonly again: boolean
  /** What the server asked for. */
  readonly waitMs: number

  constructor(error: Error, again: boolean, waitMs: number) {
    this.error = error
    this.again = again
    this.waitMs = waitMs
  }
}

async function refusal({ repeatable }: Call, response: Response): Promise<Trouble> {
  const text = await response.text().catch(() => '')
  const body = parse(text) as { error?: Record<string, unknown>; requestId?: string } | undefined
  const retryAfterS = secondsOf(response.headers.get('retry-after'))
  const requestId = body?.requestId ?? response.headers.get('x-request-id') ?? undefined
  const { status } = response
  // A proxy's own error page has no error of ours in it.
  const error = apiError({
    code: `http_${status}`,
    message: `The server answered ${status} ${response.statusText}`.trimEnd(),
    retryable: status === 429 || status >= 500,
    ...body?.error,
    status,
    requestId,
    retryAfterS,
  })
  const undone = status === 429 || status === 503
  // A failed run has cost something, and its tools may have had effects: only the caller starts another one.
  const again = error.interactionId === undefined && error.retryable && (undone || (repeatable && status >= 500))
  return new Trouble(error, again, (retryAfterS ?? 0) * 1000)
}

async function pause(tries: number, atLeastMs: number, signal: AbortSignal | undefined): Promise<void> {
  const spread = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1))
  const ms = atLeastMs + Math.random() * spread
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(aborted(signal!))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

export function aborted(signal: AbortSignal): AbortedError {
  return new AbortedError('The call was aborted.', { cause: signal.reason })
}

function encodeBody({ body, type }: Call): [RequestInit['body'], string | undefined] {
  if (body === undefined) return [undefined, undefined]
  return type === undefined ? [JSON.stringify(body), 'application/json'] : [body as RequestInit['body'], type]
}

function addressOf(url: string, query: Call['query'] = {}): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? url : `${url}?${new URLSearchParams(given)}`
}

/** Without the path: the query of a signed address is a secret. */
function originOf(address: string): string {
  return URL.canParse(address) ? new URL(address).origin : address
}

function secondsOf(header: string | null): number | undefined {
  if (header === null) return undefined
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, (at - Date.now()) / 1000)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** fetch says "fetch failed" and keeps what happened in a chain of causes. */
function reasonOf(error: unknown): string {
  let deepest = error as { message?: string; code?: string; cause?: unknown }
  while (deepest.cause) deepest = deepest.cause as typeof deepest
  return deepest.message || deepest.code || String(error)
}

/** Undefined where there is no environment, as in a browser. */
function fromEnvironment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[name] || undefined
}
