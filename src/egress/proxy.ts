/**
 * The proxy of a sandbox: the only network access of its programs. It never listens. Connections made inside arrive as
 * streams, and must use CONNECT, or plain HTTP with absolute URLs.
 *
 *   host name → check against the run's network rules → same connection path as every request of the guard (connect.ts)
 *
 * A host that is not allowed is never resolved, because a name can carry data out. The content of a tunnel is not inspected:
 * we do not check that it is TLS, or for the requested host. So allowing a host that fronts for others allows those too.
 *
 * Requests to the hosts of `network.inject` get a credential on the way. For https the proxy answers as that host, with a
 * certificate of the run's own authority, and connects to the real host itself.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { goesInClear, injectionsFor, type Network, verdictOf } from '../domain/network.ts'
import type { Log } from '../telemetry/log.ts'
import type { Connect } from './connect.ts'
import { exchange, MAX_HEADER_BYTES } from './exchange.ts'
import { startTimeout } from './fetch-timeout.ts'
import { createPipe } from './pipe.ts'
import { EgressError, type InjectedCredential, type SandboxProxy, type SandboxProxyTerms } from './port.ts'
import { checkHost, Refusal, readAuthority, readProxied, refuse, refuseTunnel } from './proxy-messages.ts'
import { type HostPort, type SsrfPolicy, toHostPort } from './ssrf-policy.ts'
import { createTlsInterceptor } from './tls-intercept.ts'

/** Maximum number of concurrent connections. */
const MAX_CONNECTIONS = 128
const CONNECT_MS = 30_000
const IDLE_MS = 120_000
/** Maximum number of refusals remembered for `refusalOf`. */
const MAX_REMEMBERED = 200

interface ProxyDependencies {
  readonly policy: SsrfPolicy
  readonly connect: Connect
  readonly log: Log
}

export function createProxy({ policy, connect, log }: ProxyDependencies, terms: SandboxProxyTerms): SandboxProxy {
  const { network, onConnect, budget } = terms
  const closing = new AbortController()
  const connections = new Set<Duplex>()
  const refusals = new Map<string, string>()
  const pipe = createPipe(budget, terms.idleMs ?? IDLE_MS)

  function remember(host: string, sentence: string): void {
    if (refusals.size >= MAX_REMEMBERED) refusals.delete(refusals.keys().next().value!)
    refusals.set(host, sentence)
  }

  /** Checks a host and port. Throws Refusal, or what `onConnect` throws. */
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

  /** Connects to a host. Closes the connection when its client closes. Throws Refusal, EgressError, or what `onConnect` throws. */
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

  /** Forwards an admitted request, with a credential if the host needs one. */
  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    hostPort: HostPort,
  ): Promise<void> {
    const signedIn = await signIn(hostPort)
    const upstream = await attempt(url.hostname, () => dial(hostPort, response))
    await exchange(pipe, request, response, upstream, url, signedIn)
  }

  /** The credential for a host; none if the host is not in `inject`. Throws Refusal if it can't be obtained. */
  async function signIn({ host, port, tls }: HostPort): Promise<InjectedCredential> {
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

  // A server that does not listen runs none of its timers. The pipe's idle timeout applies instead.
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES })
  server.on('request', (request, response) => {
    forward(request, response).catch((error) => refuse(response, reasonOf(error)))
  })
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    tunnel(request, client, head).catch((error) => refuseTunnel(client, reasonOf(error)))
  })
  server.on('clientError', (_, client) => {
    refuseTunnel(client, new Refusal(400, 'this is an HTTP proxy, and the request is not valid HTTP.'))
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
