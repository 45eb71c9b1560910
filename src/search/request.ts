/**
 * One question to a search service, through the guard: bounded in time and bytes, tried again where that may help. The
 * service's address is the operator's own word, so it may be private; where it redirects to, the guard judges.
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
/** A service that asks for more patience is not waited for. */
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
  /** Whether another try may help, and how long the service asks to wait. */
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
        answer: { ok: false, status, message: wordsFor(status) },
        again: status === 429 || status >= 500,
        pauseMs,
      }
    }
    const chunks: Uint8Array[] = []
    for await (const chunk of answer.body) chunks.push(chunk)
    const json = parse(Buffer.concat(chunks).toString('utf8'))
    if (json !== undefined) return { answer: { ok: true, json }, again: false }
    return { answer: { ok: false, status, message: 'The search service did not answer with JSON.' }, again: false }
  } catch (error) {
    terms.signal.throwIfAborted()
    if (!(error instanceof EgressError)) throw error
    const again = error.code === 'unreachable' || error.code === 'too_slow'
    return { answer: { ok: false, status: undefined, message: troubleOf(error) }, again }
  }
}

/** What the guard says names the service's host, which is the operator's affair. */
function troubleOf({ code }: EgressError): string {
  switch (code) {
    case 'refused':
    case 'too_many_redirects':
      return 'The search service redirects to where this server may not go.'
    case 'unreachable':
      return "The search service can't be reached."
    case 'too_large':
      return 'The answer of the search service was too large.'
    case 'too_slow':
      return 'The search service took too long.'
    default:
      return code satisfies never
  }
}

function wordsFor(status: number): string {
  if (status === 401 || status === 403)
    return 'The search service refused this server: its operator must look at the key.'
  if (status === 402 || status === 432 || status === 433) return "The search service's plan is used up."
  if (status === 429) return 'The search service was asked too often; it may answer again later.'
  if (status === 400 || status === 422) return 'The search service does not take this query. Word it in another way.'
  return `The search service answered with an error (${status}).`
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
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
