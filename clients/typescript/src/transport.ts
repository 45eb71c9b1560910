/** Sends all calls to the server: authentication, timeouts, retries and errors. */
import { apiError } from './api-error.ts'
import { AbortedError, ConnectionError, ErrandError, TimeoutError } from './errors.ts'

const REVISION = '2026-05-20'
const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_MAX_RETRIES = 4
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8_000

export interface ClientOptions {
  /** API key of a project. Default: `ERRAND_API_KEY` of the environment. */
  readonly apiKey?: string
  /** Address of the server. Default: `ERRAND_BASE_URL` of the environment, else `http://127.0.0.1:8080`. */
  readonly baseUrl?: string
  /**
   * Timeout of one request in milliseconds; default 60,000. For streams and downloads it applies to the response headers. A run
   * can take longer: the client waits for it in several requests.
   */
  readonly timeoutMs?: number
  /** Maximum number of retries of a request; default 4. */
  readonly maxRetries?: number
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch
}

export interface RequestOptions {
  /** Aborts waiting. The run on the server continues, unless `cancelOnAbort` is set. */
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly maxRetries?: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Path below the base address, or an absolute URL, which is requested without the key. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** Sent as JSON, or unchanged if `type` is set. */
  readonly body?: unknown
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Whether the request is idempotent. A request that is not is retried only after a response that means that nothing was
   * done (429, 503).
   */
  readonly repeatable: boolean
  /** Time that the server was asked to wait, in milliseconds; added to the timeout. */
  readonly waitMs?: number
}

export interface Transport {
  /** Sends the call, with retries. Throws ApiError, ConnectionError, TimeoutError, AbortedError. */
  send(call: Call, options?: RequestOptions): Promise<Response>
  /** Sends the call and parses the response as JSON. */
  json<T>(call: Call, options?: RequestOptions): Promise<T>
  /** Waits before retry number `tries` (from 1): exponential backoff with jitter, at least `atLeastMs`. */
  pause(tries: number, atLeastMs: number, signal: AbortSignal | undefined): Promise<void>
  readonly maxRetries: number
}

export function createTransport(options: ClientOptions): Transport {
  const apiKey = options.apiKey ?? fromEnvironment('ERRAND_API_KEY')
  if (!apiKey) throw new ErrandError('There is no API key. Pass `apiKey`, or set ERRAND_API_KEY in the environment.')
  const base = (options.baseUrl ?? fromEnvironment('ERRAND_BASE_URL') ?? 'http://127.0.0.1:8080').replace(/\/+$/, '')
  const { fetch: doFetch = fetch, maxRetries = DEFAULT_MAX_RETRIES, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const identity = { 'x-svc-api-key': apiKey, 'Api-Revision': REVISION, ...options.headers }

  async function sendOnce<T>(
    call: Call,
    { signal, headers, ...own }: RequestOptions,
    read: ReadResponse<T>,
  ): Promise<T> {
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

  async function send<T>(call: Call, request: RequestOptions, read: ReadResponse<T>): Promise<T> {
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

  async function attempt<T>(call: Call, request: RequestOptions, read: ReadResponse<T>): Promise<T | Trouble> {
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

/** Reads a successful response, within the timeout. */
type ReadResponse<T> = (response: Response) => Promise<T>

/** Error for a response of another program, such as the sign-in page of a proxy. */
export function notOurs(): ConnectionError {
  return new ConnectionError('The response is not from an Errand server. Check the base address.')
}

class Trouble {
  readonly error: Error
  readonly again: boolean
  /** Delay that the server asked for. */
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
  // The error page of a proxy has no error object of the API.
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
  // A failed run has cost money and its tools may have had effects, so only the caller may start another one.
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

/** Origin of an address, for messages. The rest may be secret: a signed URL has its signature in the query. */
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

/** `fetch` throws "fetch failed" and has the reason in a chain of causes. */
function reasonOf(error: unknown): string {
  let deepest = error as { message?: string; code?: string; cause?: unknown }
  while (deepest.cause) deepest = deepest.cause as typeof deepest
  return deepest.message || deepest.code || String(error)
}

/** Returns undefined without an environment, as in a browser. */
function fromEnvironment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[name] || undefined
}
