/** HTTP servers on loopback that count connections: canaries that nothing may reach, and servers that tests fetch from. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { createEgress, type EgressOptions } from '../../src/egress/create-egress.ts'
import type { Egress, Fetched, FetchOptions } from '../../src/egress/port.ts'

export interface Canary {
  readonly port: number
  /** Number of connections, with or without data. */
  readonly hits: number
  /** Number of open connections. */
  open(): Promise<number>
  close(): Promise<void>
}

/** `port`: set it to use the port of another canary on another address. */
export async function openCanary(host: string, listener?: RequestListener, port = 0): Promise<Canary> {
  let hits = 0
  const server: Server = createServer(listener ?? ((_, response) => response.end('the canary')))
  server.on('connection', () => hits++)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  return {
    port: (server.address() as AddressInfo).port,
    get hits() {
      return hits
    },
    open: () => new Promise((resolve) => server.getConnections((_, count) => resolve(count))),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export function guard(parts: Partial<EgressOptions> = {}): Egress {
  return createEgress({
    allowPrivate: [],
    log: pino({ level: 'silent' }),
    // No test uses DNS.
    resolve: () => Promise.reject(new Error('no names here')),
    ...parts,
  })
}

export function fetchFrom(egress: Egress, url: string, options: Partial<FetchOptions> = {}): Promise<Fetched> {
  return egress.fetch(url, { signal: new AbortController().signal, maxBytes: 1e6, timeoutMs: 60_000, ...options })
}

export async function textOf({ body }: Fetched): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts).toString()
}
