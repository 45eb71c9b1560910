/** HTTP servers on loopback that count who came: what must stay untouched, and what a test fetches from. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { createEgress, type EgressParts } from '../../src/egress/create-egress.ts'
import type { Egress, Fetched, FetchOptions } from '../../src/egress/port.ts'

export interface Canary {
  readonly port: number
  /** Connections, whether or not they said a word. */
  readonly hits: number
  /** Connections that are open now. */
  open(): Promise<number>
  close(): Promise<void>
}

/** `port`: the one to listen on, where another canary has it on another address. */
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

export function guard(parts: Partial<EgressParts> = {}): Egress {
  return createEgress({
    allowPrivate: [],
    log: pino({ level: 'silent' }),
    // No test asks a name service.
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
