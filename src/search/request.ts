/**
 * Requests to a search service, through the egress guard, with limits on time and size, and retries of transient errors. The
 * operator configures the service's address, so it may be private. The guard checks its redirects as usual.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Egress, EgressError } from '../egress/port.ts'
import type { SearchTerms } from './port.ts'

export interface SearchRequest {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
}

export type SearchAnswer =
  | { readonly ok: true; readonly json: unknown }
  | { readonly ok: false; readonly status: number | undefined; readonly message: string }

const MAX_BYTES = 4 * 1024 * 1024
const TRIES = 3
const TRY_MS = 20_000
const FIRST_PAUSE_MS = 500
/** Maximum pause before a retry, milliseconds. If the service asks for a longer one, we do not retry. */
const MAX_PAUSE_MS = 10_000

/** Rejects only with the signal's reason. */
export async function ask(egress: Egress, request: SearchRequest, terms: SearchTerms): Promise<SearchAnswer> {
  for (let tried = 1; ; tried++) {
    const { answer, again, pauseMs } = await attempt(egress, request, terms)
    const pause = pauseMs ?? FIRST_PAUSE_MS * 2 ** (tried - 1) * (0.5 + Math.random())
    if (!again || tried === TRIES || pause > MAX_PAUSE_MS) return answer
    await delay(pause, undefined, { signal: terms.signal })
  }
}

interface Attempt {
  readonly answer: SearchAnswer
  /** True if a retry may help. `pauseMs`: the pause that the service asked for. */
  readonly again: boolean
  readonly pauseMs?: number
}

async function attempt(egress: Egress, request: SearchRequest, terms: SearchTerms): Promise<Attempt> {
  const { url, method, headers, body } = request
  try {
    const answer = await egress.fetch(url.href, {
      method,
      headers: {
        accept: 'application/json',
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      trusted: true,
      maxBytes: MAX_BYTES,
      timeoutMs: TRY_MS,
      signal: terms.signal,
      onConnect: terms.onConnect,
    })
    const { status } = answer
    if (status !== 200) {
      answer.close()
      const pauseMs = retryAfterMs(answer.headers['retry-after'])
      return {
        answer: { ok: false, status, message: messageForStatus(status) },
        again: status === 429 || status >= 500,
        pauseMs,
      }
    }
    const chunks: Uint8Array[] = []
    for await (const chunk of answer.body) chunks.push(chunk)
    const json = parse(Buffer.concat(chunks).toString('utf8'))
    if (json !== undefined) return { answer: { ok: true, json }, again: false }
    return { answer: { ok: false, status, message: 'The search service did not return JSON.' }, again: false }
  } catch (error) {
    terms.signal.throwIfAborted()
    if (!(error instanceof EgressError)) throw error
    const again = error.code === 'unreachable' || error.code === 'too_slow'
    return { answer: { ok: false, status: undefined, message: messageFor(error) }, again }
  }
}

/** A message for the model instead of the guard's own, which names the service's host. */
function messageFor({ code }: EgressError): string {
  switch (code) {
    case 'refused':
    case 'too_many_redirects':
      return 'The search service redirects to an address that this server may not connect to.'
    case 'unreachable':
      return "The search service can't be reached."
    case 'too_large':
      return 'The response of the search service was too large.'
    case 'too_slow':
      return 'The search service took too long.'
    default:
      return code satisfies never
  }
}

function messageForStatus(status: number): string {
  if (status === 401 || status === 403) return 'The search service refused the API key. The operator must check it.'
  if (status === 402 || status === 432 || status === 433) return "The search service's quota is used up."
  if (status === 429) return 'The search service limits the rate of requests. Try again later.'
  if (status === 400 || status === 422) return 'The search service rejected this query. Reword it.'
  return `The search service returned an error (${status}).`
}

/** Parses Retry-After: seconds or a date (RFC 9110, 10.2.3). */
function retryAfterMs(value: string | readonly string[] | undefined): number | undefined {
  if (typeof value !== 'string') return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
