/**
 * All code paths that connect to a host on a caller's behalf. test/egress/ssrf.test.ts sends its URLs through each of them
 * (row S1 of docs/proof.md). To add one, add an entry to SINKS. Its `open` gets a guard that resolves every name to a canary's
 * address and records what is dialed. It returns `attempt(url)`, which sends one URL as a caller would, resolves if it was
 * refused, and rejects with the result otherwise. Nothing may be dialed.
 */
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createLibraryFetch } from '../../src/egress/library-fetch.ts'
import { type Egress, EgressError } from '../../src/egress/port.ts'
import { fetchFrom } from './canary.ts'

export interface OpenSink {
  attempt(url: string): Promise<void>
  close(): void
}

export interface Sink {
  readonly name: string
  open(egress: Egress): OpenSink
}

export const SINKS: readonly Sink[] = [
  {
    // Input files, search services and all other direct callers of the guard.
    name: 'a file by URL',
    open: (egress) => ({ attempt: (url) => refused(fetchFrom(egress, url)), close() {} }),
  },
  {
    // MCP servers, OAuth endpoints and other libraries with a `fetch` option.
    name: 'a library’s fetch',
    open(egress) {
      const signal = new AbortController().signal
      const fetch = createLibraryFetch(egress, { signal, maxBytes: 1e6, timeoutMs: 60_000 })
      return {
        attempt: (url) => refused(fetch(url, { method: 'POST', body: 'x', headers: { authorization: 'x' } })),
        close() {},
      }
    },
  },
  proxySink('a tunnel of a sandbox', (url) => {
    const [, scheme = 'https', authority = url] = /^([a-z+-]*):?[\\/]*([^/]*)/is.exec(url) ?? []
    const port = /:\d+$/.test(authority) ? '' : scheme === 'http' ? ':80' : ':443'
    return `CONNECT ${authority}${port} HTTP/1.1\r\n\r\n`
  }),
  proxySink(
    'a plain request of a sandbox',
    (url) => `GET ${url} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n`,
  ),
  proxySink('a plain request of a sandbox, without TLS', (url) => {
    return `GET ${url.replace(/^https:/i, 'http:')} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`
  }),
]

/** A sandbox proxy whose run may reach all public hosts. */
function proxySink(name: string, toBytes: (url: string) => string): Sink {
  return {
    name,
    open(egress) {
      const budget = { bytes: 1e9, spent: 'spent' }
      const proxy = egress.openProxy({ network: 'public', budget, onConnect: () => {} })
      return {
        async attempt(url) {
          const said = await sayTo(proxy.handle, toBytes(url))
          if (!/^HTTP\/1\.1 (400|403|502) /.test(said)) throw new Error(`answered: ${JSON.stringify(said)}`)
        },
        close: proxy.close,
      }
    },
  }
}

/** Returns the proxy's response to these bytes. */
async function sayTo(handle: (connection: ReturnType<typeof duplexPair>[0]) => void, bytes: string | Buffer) {
  const [inside, outside] = duplexPair()
  handle(outside)
  inside.write(bytes)
  const said = await text(inside)
  inside.destroy()
  outside.destroy()
  return said
}

async function refused(attempt: Promise<unknown>): Promise<void> {
  const outcome = await attempt.catch((error) => error)
  if (outcome instanceof EgressError && outcome.code === 'refused') return
  // An invalid URL is rejected by `fetch` itself.
  if (outcome instanceof TypeError && /URL|scheme|credentials/i.test(outcome.message)) return
  throw new Error('it was not refused', { cause: outcome })
}
