/**
 * The proxy of one sandbox: its programs' only way out. Fed with connections that were made inside; speaks CONNECT and
 * plain HTTP by absolute address, nothing else.
 *
 *   authority → named host → allowed by the run's rules → resolved, once → every address judged → told → that address dialled
 *
 * A host that is not allowed is never looked up: a name can carry what must not leave. What is spoken inside a tunnel is
 * not looked at, so an allowed host that fronts for others opens those too.
 */
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, pipeline, Transform } from 'node:stream'
import { allows, type Network } from '../domain/network.ts'
import type { Log } from '../telemetry/log.ts'
import type { Target } from './judge.ts'
import type { Contact, SandboxProxy, SandboxProxyTerms } from './port.ts'

/** What the guard does for its proxies. */
export interface ProxyParts {
  judgeHost(host: string, port: number, tls: boolean): Target | string
  isOpened(target: Target): boolean
  /** Resolves and judges, tells, dials. Rejects with EgressError. */
  dial(target: Target, onConnect: (contact: Contact) => Promise<void>, signal: AbortSignal): Promise<Socket>
  readonly log: Log
}

const IDLE_MS = 300_000
const DIAL_MS = 30_000
const MAX_CONNECTIONS = 256
const HOP_BY_HOP = [
  ...['connection', 'proxy-connection', 'keep-alive', 'proxy-authorization', 'proxy-authenticate'],
  ...['te', 'trailer', 'upgrade', 'host'],
]

export function createSandboxProxy(parts: ProxyParts, terms: SandboxProxyTerms): SandboxProxy {
  const closing = new AbortController()
  const open = new Set<Duplex>()
  let bytes = 0

  /** The target, or the reason why not. */
  async function authorize(host: string, port: number, tls: boolean): Promise<Target | string> {
    const target = parts.judgeHost(host, port, tls)
    if (typeof target === 'string') return `${printable(host)} ${target}`
    const byRule = allows(terms.network, target.host, port)
    if (byRule || (terms.network === 'public' && parts.isOpened(target))) {
      return bytes < terms.maxBytes ? target : `this run has used its ${terms.maxBytes} bytes of network`
    }
    await terms.onConnect({ host: target.host, port, outcome: 'refused' })
    return `${target.host}:${port} is not allowed for this run; ${describe(terms.network)}`
  }

  /** Counts what goes through, and ends the connection that goes over. */
  function counted(): Transform {
    return new Transform({
      transform(chunk: Buffer, _encoding, callback) {
        bytes += chunk.length
        callback(bytes > terms.maxBytes ? new Error('The run has used its bytes of network.') : null, chunk)
      },
    })
  }

  function hold(stream: Duplex): void {
    open.add(stream)
    stream.once('close', () => open.delete(stream))
    stream.on('error', () => {}) // `close` follows
  }

  async function dial(target: Target): Promise<Socket> {
    const socket = await parts.dial(
      target,
      terms.onConnect,
      AbortSignal.any([closing.signal, AbortSignal.timeout(DIAL_MS)]),
    )
    hold(socket)
    socket.setTimeout(IDLE_MS, () => socket.destroy())
    return socket
  }

  async function connect(asked: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const [, host = '', digits = ''] = /^([^:]*):(\d{1,5})$/.exec(asked.url ?? '') ?? []
    const target = await authorize(host, Number(digits), true)
    if (typeof target === 'string') return refuse(client, target)
    let upstream: Socket
    try {
      upstream = await dial({ ...target, tls: false })
    } catch (error) {
      return refuse(client, (error as Error).message, '502 Bad Gateway')
    }
    client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    if (head.length > 0) client.unshift(head)
    pipeline(client, counted(), upstream, ignore)
    pipeline(upstream, counted(), client, ignore)
  }

  async function forward(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = URL.canParse(asked.url ?? '') ? new URL(asked.url!) : undefined
    if (url?.protocol !== 'http:' || url.username !== '' || url.password !== '') {
      return sayNo(answer, 400, 'This is a proxy: send an http:// address, or CONNECT for https.')
    }
    const named = /^http:\/\/([^/?#:]*)/i.exec(asked.url!)?.[1] ?? ''
    const target = await authorize(named, Number(url.port || 80), false)
    if (typeof target === 'string') return sayNo(answer, 403, target)
    let socket: Socket
    try {
      socket = await dial(target)
    } catch (error) {
      return sayNo(answer, 502, (error as Error).message)
    }
    relay(asked, answer, onward(asked, url, socket))
  }

  function relay(asked: IncomingMessage, answer: ServerResponse, sent: ClientRequest): void {
    sent.once('response', (received) => {
      answer.writeHead(received.statusCode ?? 502, received.statusMessage, endToEnd(received.rawHeaders))
      pipeline(received, counted(), answer, ignore)
    })
    sent.once('error', (error: NodeJS.ErrnoException) => {
      if (answer.headersSent) answer.destroy()
      else sayNo(answer, 502, `The host broke the connection off${error.code ? ` (${error.code})` : ''}.`)
    })
    pipeline(asked, counted(), sent, ignore)
  }

  const server: Server = createServer({ keepAliveTimeout: IDLE_MS, requestTimeout: 0 }, (asked, answer) => {
    forward(asked, answer).catch((error) => fail(error, () => sayNo(answer, 500, 'The proxy failed.')))
  })
  server.on('connect', (asked: IncomingMessage, client: Duplex, head: Buffer) => {
    connect(asked, client, head).catch((error) => fail(error, () => client.destroy()))
  })
  server.on('upgrade', (_: IncomingMessage, client: Duplex) => refuse(client, 'use CONNECT for WebSockets'))
  server.on('clientError', (_: Error, client: Duplex) => client.destroy())

  function fail(error: unknown, answer: () => void): void {
    parts.log.error({ err: error }, 'the proxy of a sandbox failed')
    answer()
  }

  return {
    handle(connection) {
      if (closing.signal.aborted || open.size >= 2 * MAX_CONNECTIONS) return void connection.destroy()
      hold(connection)
      server.emit('connection', connection)
    },
    close() {
      closing.abort()
      for (const stream of open) stream.destroy()
    },
  }
}

function onward(asked: IncomingMessage, url: URL, socket: Socket): ClientRequest {
  return request({
    method: asked.method,
    path: url.pathname + url.search,
    headers: [...endToEnd(asked.rawHeaders), 'Host', url.host, 'Connection', 'close'],
    createConnection: () => socket,
  })
}

/** Header lines as they came, but for those that speak of one connection alone (RFC 9110, 7.6.1), and Host. */
function endToEnd(raw: readonly string[]): string[] {
  const pairs = raw.flatMap((name, i) => (i % 2 === 0 ? [[name, raw[i + 1]!] as const] : []))
  const named = pairs
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(/\s*,\s*/))
  const dropped = new Set([...HOP_BY_HOP, ...named])
  return pairs.filter(([name]) => !dropped.has(name.toLowerCase())).flat()
}

function describe(network: Network): string {
  if (network === 'disabled') return 'it has no network'
  return network === 'public' ? 'ports 80 and 443 are' : `what is: ${network.allow.join(', ') || 'nothing'}`
}

function sayNo(answer: ServerResponse, status: number, reason: string): void {
  if (answer.headersSent) return void answer.destroy()
  answer.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'x-errand-proxy': 'refused' })
  answer.end(`Refused by the egress guard: ${reason}\n`)
}

function refuse(client: Duplex, reason: string, status = '403 Forbidden'): void {
  const body = `Refused by the egress guard: ${reason}\n`
  client.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** What a program wrote for a host, for a sentence. */
function printable(host: string): string {
  return JSON.stringify(host.slice(0, 100))
}

function ignore(): void {} // both ends are destroyed by pipeline: there is nobody to tell
