/**
 * The egress guard. It checks each hop of a redirect chain separately:
 *
 *   check the URL → resolve the name, once → check every address → audit (`onConnect`) → dial that address → send the request
 *
 * Each hop has its own connection. Connections are not pooled, so none is used under another check than its own. Proxy
 * settings of the environment are ignored, because a proxy would dial for us.
 */
import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import type { Log } from '../telemetry/log.ts'
import { trustBundle, trustedWith } from './authorities.ts'
import { codeOf, createConnect, unreachable } from './connect.ts'
import { type Dial, dialTcp } from './dial.ts'
import { type FetchTimeout, startTimeout } from './fetch-timeout.ts'
import { type Egress, EgressError, type Fetched, type FetchOptions } from './port.ts'
import { createProxy } from './proxy.ts'
import { type Resolve, resolveByDns } from './resolve.ts'
import { createSsrfPolicy, type Target, toTarget } from './ssrf-policy.ts'

export interface EgressOptions {
  /** `10.1.0.0/16`, `127.0.0.1:9000`: the operator's `egress.allowPrivate`. */
  readonly allowPrivate: readonly string[]
  readonly log: Log
  /** PEM certificates of authorities to trust in addition to Node's. */
  readonly authorities?: string | undefined
  readonly resolve?: Resolve
  readonly dial?: Dial
  /** Maximum time without a byte, milliseconds. */
  readonly idleMs?: number
}

const IDLE_MS = 30_000
const MAX_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** A response whose body has not been read yet. */
interface Hop {
  readonly answer: Dispatcher.ResponseData
  close(): void
}

export function createEgress(parts: EgressOptions): Egress {
  const { allowPrivate, log, resolve = resolveByDns, dial = dialTcp, idleMs = IDLE_MS } = parts
  const policy = createSsrfPolicy(allowPrivate)
  const { checkUrl } = policy
  const connect = createConnect({ policy, resolve, dial, trusted: trustedWith(parts.authorities), log })

  async function visit(target: Target, sent: Sent, options: FetchOptions, fetchTimeout: FetchTimeout): Promise<Hop> {
    const socket = await connect(target, options.onConnect, fetchTimeout)
    return request(target, socket, sent, fetchTimeout).catch((error) => {
      fetchTimeout.signal.throwIfAborted()
      throw unreachable(target.host, error)
    })
  }

  async function follow(
    url: string,
    options: FetchOptions,
    fetchTimeout: FetchTimeout,
  ): Promise<Hop & { host: string }> {
    const { method = 'GET', headers = {}, body, redirect = 'follow' } = options
    let sent: Sent = { method, headers, body }
    for (let at = url, redirects = 0; ; redirects++) {
      const trusted = options.trusted === true && redirects === 0
      const target = trusted ? { ...toTarget(new URL(at)), trusted } : checkUrl(at)
      if (typeof target === 'string') throw refused(target, redirects)
      const hop = await visit(target, sent, options, fetchTimeout)
      const next = redirect === 'manual' ? undefined : redirectOf(hop.answer, target.url)
      if (!next) return { ...hop, host: target.host }
      hop.close()
      if (redirect === 'error')
        throw new EgressError('refused', `${target.host} redirects, which is not followed here.`)
      if (redirects === MAX_REDIRECTS) {
        throw new EgressError('too_many_redirects', `It redirects more than ${MAX_REDIRECTS} times.`)
      }
      sent = nextRequest(sent, hop.answer.statusCode)
      if (next.origin !== target.url.origin) {
        if (sent.body !== undefined)
          throw new EgressError('refused', `${target.host} redirects the request body to another origin.`)
        sent = { ...sent, headers: {} }
      }
      at = next.href
    }
  }

  return {
    faultOf(url) {
      const verdict = checkUrl(url)
      return typeof verdict === 'string' ? verdict : undefined
    },
    trusted: () => trustBundle(parts.authorities),
    openProxy: (terms) => createProxy({ policy, connect, log }, terms),
    async fetch(url, options) {
      const fetchTimeout = startTimeout(options.signal, options.timeoutMs, options.idleMs ?? idleMs)
      try {
        const { answer, close, host } = await follow(url, options, fetchTimeout)
        const end = () => {
          fetchTimeout.stop()
          close()
        }
        if (Number(answer.headers['content-length'] ?? 0) > options.maxBytes) {
          end()
          throw tooLarge(options.maxBytes)
        }
        const body = readBody(answer.body, { maxBytes: options.maxBytes, host, fetchTimeout, end })
        return { status: answer.statusCode, headers: answer.headers, body, close: end } satisfies Fetched
      } catch (error) {
        fetchTimeout.stop()
        throw error
      }
    },
  }
}

type Sent = Required<Pick<FetchOptions, 'method' | 'headers'>> & Pick<FetchOptions, 'body'>

/** The request for the next hop (Fetch Standard, 4.4). After a 303, or a 301 or 302 to a POST, it is a GET. */
function nextRequest(sent: Sent, status: number): Sent {
  const turnsToGet =
    (status === 303 && sent.method !== 'HEAD') || ((status === 301 || status === 302) && sent.method === 'POST')
  if (!turnsToGet) return sent
  const headers = Object.fromEntries(Object.entries(sent.headers).filter(([name]) => !/^content-/i.test(name)))
  return { method: 'GET', headers, body: undefined }
}

async function request({ url }: Target, socket: Socket, sent: Sent, fetchTimeout: FetchTimeout): Promise<Hop> {
  let given = false
  const client = new Client(url.origin, {
    connect(_, callback) {
      // Deferred: undici would hang if the callback were called synchronously.
      if (given) queueMicrotask(() => callback(new Error('closed'), null))
      else queueMicrotask(() => callback(null, socket))
      given = true
    },
    // One request for each connection.
    pipelining: 0,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const close = () => {
    fetchTimeout.signal.removeEventListener('abort', close)
    client.destroy().catch(() => {})
    socket.destroy()
  }
  fetchTimeout.signal.addEventListener('abort', close)
  try {
    const answer = await fetchTimeout.await(
      client.request({
        method: sent.method as Dispatcher.HttpMethod,
        path: url.pathname + url.search,
        headers: { 'user-agent': 'errand', accept: '*/*', 'accept-encoding': 'identity', ...sent.headers },
        body: sent.body ?? null,
      }),
    )
    // The body may be closed before it is read; the code that closes it knows why.
    answer.body.on('error', () => {})
    return { answer, close }
  } catch (error) {
    close()
    throw error
  }
}

interface BodyTerms {
  readonly maxBytes: number
  readonly host: string
  readonly fetchTimeout: FetchTimeout
  readonly end: () => void
}

async function* readBody(
  body: AsyncIterable<Uint8Array>,
  { maxBytes, host, fetchTimeout, end }: BodyTerms,
): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  try {
    for (let total = 0; ; ) {
      const next = await fetchTimeout.await(chunks.next())
      if (next.done) return
      total += next.value.byteLength
      if (total > maxBytes) throw tooLarge(maxBytes)
      yield next.value
    }
  } catch (error) {
    fetchTimeout.signal.throwIfAborted()
    if (error instanceof EgressError) throw error
    throw new EgressError('unreachable', `The answer of ${host} broke off${codeOf(error)}.`, error)
  } finally {
    end()
  }
}

function redirectOf({ statusCode, headers }: Dispatcher.ResponseData, base: URL): URL | undefined {
  const { location } = headers
  if (!REDIRECTS.has(statusCode) || typeof location !== 'string') return undefined
  if (!URL.canParse(location, base.href)) throw refused('is not a valid address', 1)
  return new URL(location, base)
}

function refused(fault: string, redirects: number): EgressError {
  const what = redirects === 0 ? 'The address is refused' : 'It redirects to an address that is refused'
  return new EgressError('refused', `${what}: it ${fault}.`)
}

function tooLarge(maxBytes: number): EgressError {
  return new EgressError('too_large', `It is larger than ${maxBytes.toLocaleString('en-US')} bytes.`)
}
