/**
 * A proxy that injects network faults: each request meets the next planned fault, in order of arrival. Requests without a plan
 * pass.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Plan =
  /** The request passes. */
  | 'pass'
  /** The connection is reset before the request reaches the server. */
  | 'refuse'
  /** The server handles the request, and its response is lost. */
  | 'lose-answer'
  /** The request gets no response. */
  | 'silence'
  /** The proxy sends this response itself. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** The response is cut after this number of events. */
  | { readonly cutAfterEvents: number }
  /** The response is cut in the middle of its body. */
  | 'cut-answer'
  /** Inserts this text after the first event of the stream. */
  | { readonly insert: string }
  /** Changes the first byte of the body. */
  | 'corrupt'

export interface UnreliableProxy {
  readonly url: string
  /** `METHOD path`, in order of arrival. */
  readonly requests: readonly string[]
  /** Address of the server; can be changed. */
  target: string
  plan(...plans: Plan[]): void
  reset(): void
  close(): Promise<void>
}

/** `keepHost` forwards the proxy's own Host header, as browsers with one origin need it. */
export async function openUnreliableProxy(
  target: string,
  { keepHost = false }: { readonly keepHost?: boolean } = {},
): Promise<UnreliableProxy> {
  const requests: string[] = []
  let plans: Plan[] = []
  const server = createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`)
    act(plans.shift() ?? 'pass', { target: proxy.target, keepHost }, incoming, outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: UnreliableProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    target,
    plan: (...more) => void plans.push(...more),
    reset() {
      plans = []
      requests.length = 0
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}

interface Way {
  readonly target: string
  readonly keepHost: boolean
}

function act(plan: Plan, { target, keepHost }: Way, incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (plan === 'silence') return void incoming.resume()
  if (plan === 'refuse') return void incoming.socket.resetAndDestroy()
  if (typeof plan === 'object' && 'status' in plan) {
    incoming.resume()
    return void outgoing.writeHead(plan.status, plan.headers).end(plan.body ?? '<h1>Proxy</h1>')
  }
  const { hostname, port } = new URL(target)
  const onward = request({
    hostname,
    port,
    path: incoming.url,
    method: incoming.method,
    headers: keepHost ? incoming.headers : { ...incoming.headers, host: `${hostname}:${port}` },
    agent: false,
  })
  onward.on('error', () => outgoing.socket?.destroy())
  onward.on('response', (answer) => {
    if (plan === 'cut-answer') {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.once('data', (chunk) =>
        outgoing.write(chunk.subarray(0, chunk.length / 2), () => outgoing.socket?.resetAndDestroy()),
      )
      return
    }
    if (plan === 'lose-answer') {
      // Only when the server has said that it took it.
      answer.once('data', () => incoming.socket.resetAndDestroy()).once('end', () => incoming.socket.resetAndDestroy())
      return
    }
    outgoing.writeHead(answer.statusCode!, answer.headers)
    outgoing.flushHeaders()
    pass(plan, answer, outgoing)
  })
  outgoing.on('close', () => onward.destroy())
  incoming.pipe(onward)
}

function pass(plan: Plan, answer: IncomingMessage, outgoing: ServerResponse): void {
  let first = true
  let left = typeof plan === 'object' && 'cutAfterEvents' in plan ? plan.cutAfterEvents : Number.POSITIVE_INFINITY
  answer.on('data', (chunk: Buffer) => {
    if (plan === 'corrupt' && first) chunk = Buffer.concat([Buffer.from([chunk[0]! ^ 1]), chunk.subarray(1)])
    if (typeof plan === 'object' && 'insert' in plan && first) {
      const end = chunk.indexOf('\n\n') + 2
      chunk = Buffer.concat([chunk.subarray(0, end), Buffer.from(plan.insert), chunk.subarray(end)])
    }
    first = false
    for (let at = 0; left !== Number.POSITIVE_INFINITY; ) {
      const end = chunk.indexOf('\n\n', at)
      if (end < 0) break
      at = end + 2
      if (--left > 0) continue
      // In the middle of the next event, where that is there.
      outgoing.write(chunk.subarray(0, at + 7), () => outgoing.socket?.resetAndDestroy())
      answer.removeAllListeners('data').destroy()
      return
    }
    outgoing.write(chunk)
  })
  answer.on('end', () => outgoing.end())
  answer.on('error', () => outgoing.socket?.destroy())
}
