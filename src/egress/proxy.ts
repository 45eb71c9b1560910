/**
 * The proxy of a sandbox: its programs' only way out. It never listens: connections made inside arrive as streams, and
 * speak CONNECT, or plain HTTP with whole addresses; nothing else is understood.
 *
 *   named host → allowed by the run's rules → the way of every connection of the guard (connect.ts)
 *
 * A host that is not allowed is never looked up: a name can carry what must not leave. What goes through a tunnel is not
 * looked into: that it is TLS, and for the host that was asked for, is not checked, so an allowed host that fronts for
 * others opens those too.
 *
 * Requests to the hosts of `network.inject` get a credential on their way. For https the guard answers in the host's place,
 * by a certificate of an authority of this run's own, and speaks to the real host itself.
 */
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { goesInClear, injectionsFor, type Network, verdictOf } from '../domain/network.ts'
import type { Log } from '../telemetry/log.ts'
import type { Connect } from './connect.ts'
import { startTimeout } from './fetch-timeout.ts'
import { createMask, decoderOf, type Mask } from './mask.ts'
import { createPipe } from './pipe.ts'
import { EgressError, type SandboxProxy, type SandboxProxyTerms, type SignedIn } from './port.ts'
import { checkHost, endToEnd, Refusal, readAuthority, readProxied, refuse, refuseTunnel } from './proxy-messages.ts'
import { type HostPort, type SsrfPolicy, toHostPort } from './ssrf-policy.ts'
import { createTlsInterceptor } from './tls-intercept.ts'

/** Under way at once. */
const MAX_CONNECTIONS = 128
const CONNECT_MS = 30_000
const IDLE_MS = 120_000
const MAX_HEADER_BYTES = 64 * 1024
/** Fields that ask for parts of an answer: of a secret that comes back in parts, no part would be masked. */
const PARTIAL = ['range', 'if-range']
/** Refusals remembered for whoever asks for the reason. */
const MAX_REMEMBERED = 200

interface ProxyParts {
  readonly policy: SsrfPolicy
  readonly connect: Connect
  readonly log: Log
}

export function createProxy({ policy, connect, log }: ProxyParts, terms: SandboxProxyTerms): SandboxProxy {
  const { network, onConnect, budget } = terms
  const closing = new AbortController()
  const connections = new Set<Duplex>()
  const refusals = new Map<string, string>()
  const pipe = createPipe(budget, terms.idleMs ?? IDLE_MS)

  function remember(host: string, sentence: string): void {
    if (refusals.size >= MAX_REMEMBERED) refusals.delete(refusals.keys().next().value!)
    refusals.set(host, sentence)
  }

  /** Throws Refusal, or what `onConnect` throws. */
  async function admit(hostname: string, port: number): Promise<HostPort> {
    const { host } = toHostPort(hostname, port)
    const allowed = verdictOf(network, host, port)
    const verdict = allowed === 'none' ? undefined : policy.checkHostPort(hostname, port, allowed === 'port')
    if (verdict !== undefined && typeof verdict !== 'string') return verdict
    await onConnect({ host, port, outcome: 'refused' })
    throw new Refusal(
      403,
      verdict ? `${host} ${verdict}.` : `${host}:${port} is not allowed for this run; ${says(network)}.`,
    )
  }

  /** A connection to the place, which ends with whoever it is for. Throws Refusal, EgressError, or what `onConnect` throws. */
  async function dial(hostPort: HostPort, client: Duplex | ServerResponse): Promise<Duplex> {
    if (budget.bytes <= 0) throw new Refusal(403, budget.spent)
    const gone = new AbortController()
    const leave = () => gone.abort()
    client.once('close', leave)
    if (client.destroyed) leave()
    const connectTimeout = startTimeout(AbortSignal.any([closing.signal, gone.signal]), CONNECT_MS, CONNECT_MS)
    try {
      const socket = await connect(hostPort, onConnect, connectTimeout)
      gone.signal.addEventListener('abort', () => socket.destroy())
      if (gone.signal.aborted) socket.destroy()
      return socket
    } finally {
      connectTimeout.stop()
    }
  }

  async function tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const { hostname, port } = readAuthority(request.url)
    const signed = injectionsFor(network, toHostPort(hostname, port).host, port).length > 0
    if (signed) {
      const hostPort = await attempt(hostname, () => admit(hostname, port))
      return interceptor.answerFor({ ...hostPort, tls: true }, client, head)
    }
    const upstream = await attempt(hostname, async () => dial(await admit(hostname, port), client))
    client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    if (head.length > 0) client.unshift(head)
    await pipe.both(client, upstream)
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = readProxied(request)
    const port = url.port === '' ? 80 : Number(url.port)
    await answer(request, response, url, await attempt(url.hostname, () => admit(url.hostname, port)))
  }

  /** A request that was admitted, signed in where it is to be. */
  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    hostPort: HostPort,
  ): Promise<void> {
    const signedIn = await signIn(hostPort)
    const upstream = await attempt(url.hostname, () => dial(hostPort, response))
    await exchange(request, response, upstream, url, signedIn)
  }

  /** Throws Refusal: nothing goes to such a host without what it is signed in with. */
  async function signIn({ host, port, tls }: HostPort): Promise<SignedIn> {
    const injections = injectionsFor(network, host, port)
    if (injections.length === 0) return { headers: {}, confidential: [] }
    if (!tls && !injections.every(goesInClear)) {
      throw new Refusal(403, `${host} is signed in to by https alone: a credential is not sent unencrypted.`)
    }
    const signedIn = (await terms.signIn?.(host, port)) ?? 'there is nothing to sign in with'
    if (typeof signedIn !== 'string') return signedIn
    throw new Refusal(403, `${host} can't be signed in to: ${signedIn}.`)
  }

  async function attempt<T>(hostname: string, step: () => Promise<T>): Promise<T> {
    try {
      const done = await step()
      refusals.delete(hostname)
      return done
    } catch (error) {
      remember(hostname, reasonOf(error).message)
      throw error
    }
  }

  /** Hands the request on, once, and the answer back. */
  async function exchange(
    request: IncomingMessage,
    response: ServerResponse,
    upstream: Duplex,
    { host, pathname, search }: URL,
    { headers, confidential }: SignedIn,
  ): Promise<void> {
    const mask = confidential.length > 0 ? createMask(confidential) : undefined
    const chunked = request.headers['transfer-encoding'] !== undefined
    // RFC 9112, 3.2.2: the host is the address's, whatever the field said.
    const own = {
      host,
      ...headers,
      // Compressed, a secret that comes back would not be seen.
      ...(mask && { 'accept-encoding': 'identity' }),
      ...(chunked && { 'transfer-encoding': 'chunked' }),
      connection: 'close',
    }
    pipe.count(upstream)
    const onward = send({
      createConnection: () => upstream,
      method: request.method,
      path: pathname + search,
      setHost: false,
      headers: endToEnd(request.rawHeaders, own, mask ? PARTIAL : []),
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      onward.once('response', resolve)
      onward.once('error', reject)
      // An upgrade that nobody asked for ends it without a word.
      onward.once('close', () => reject(new Refusal(502, `${host} gave no answer.`)))
    })
    // The answer may come before the whole request was taken: then this fails, and nobody minds.
    pipeline(request, onward).catch(() => onward.destroy())
    const received = await answered
    if (mask) return masked(received, response, mask)
    response.writeHead(received.statusCode!, received.statusMessage, endToEnd(received.rawHeaders, {}))
    await pipeline(received, response)
  }

  /** What comes compressed all the same is unpacked, or refused: nothing passes that can't be looked into. */
  async function masked(received: IncomingMessage, response: ServerResponse, mask: Mask): Promise<void> {
    const { statusCode: status = 502, statusMessage = '', rawHeaders } = received
    const coding = received.headers['content-encoding'] ?? 'identity'
    const isPlain = coding === 'identity' || response.req.method === 'HEAD' || status === 204 || status === 304
    const decoder = isPlain ? undefined : decoderOf(coding)
    if (!isPlain && !decoder) {
      received.destroy()
      throw new Refusal(502, 'the answer is compressed in a way that can’t be looked into.')
    }
    // The length of the original would show that of the secret, and is not that of what is sent.
    const fields = endToEnd(rawHeaders, {}, ['content-length', ...(decoder ? ['content-encoding'] : [])])
    response.writeHead(status, mask.text(statusMessage), fields.map(mask.text))
    const steps = decoder ? [decoder, pipe.meter(), mask.stream()] : [mask.stream()]
    await pipeline([received, ...steps, response])
  }

  function reasonOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error
    if (error instanceof EgressError) return new Refusal(error.code === 'refused' ? 403 : 502, error.message)
    if (!closing.signal.aborted) log.debug({ err: error }, 'a connection of a sandbox broke off')
    return new Refusal(502, 'The connection broke off.')
  }

  const interceptor = createTlsInterceptor(network, MAX_HEADER_BYTES, (request, response, hostPort) => {
    const { host, port } = hostPort
    const origin = `https://${host}${port === 443 ? '' : `:${port}`}`
    const respond = async () => {
      if (!/^\/(?!\/)/.test(request.url ?? '')) throw new Refusal(400, 'the request must name a path.')
      const url = new URL(origin + request.url)
      checkHost(request.headers.host, url)
      await answer(request, response, url, hostPort)
    }
    respond().catch((error) => refuse(response, reasonOf(error)))
  })

  // None of its timers runs where nothing listens: the carrier's is the one that counts.
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES })
  server.on('request', (request, response) => {
    forward(request, response).catch((error) => refuse(response, reasonOf(error)))
  })
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    tunnel(request, client, head).catch((error) => refuseTunnel(client, reasonOf(error)))
  })
  server.on('clientError', (_, client) => {
    refuseTunnel(client, new Refusal(400, 'this is an HTTP proxy, and that was no request to one.'))
  })

  return {
    handle(connection) {
      connection.on('error', () => {}) // `close` follows
      if (closing.signal.aborted || connections.size >= MAX_CONNECTIONS) return void connection.destroy()
      connections.add(connection)
      connection.once('close', () => connections.delete(connection))
      pipe.watch(connection)
      server.emit('connection', connection)
    },
    certificate: interceptor.certificate,
    refusalOf: (host) => refusals.get(host),
    close() {
      closing.abort()
      for (const connection of connections) connection.destroy()
    },
  }
}

function says(network: Network): string {
  if (network === 'disabled') return 'it has no network'
  return network === 'public' ? 'ports 80 and 443 are' : `what is: ${network.allow.join(', ') || 'nothing'}`
}
