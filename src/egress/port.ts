/**
 * The port to external networks. Every connection made on a caller's behalf goes through it. It dials public addresses and
 * those that the operator allows (`egress.allowPrivate`), and no others, whatever name, spelling or redirect leads there.
 */
import type { Duplex } from 'node:stream'
import type { Network } from '../domain/network.ts'

/** An attempt to connect to a host, for the audit. Reported for each hop, before anything is dialed. */
export interface OutboundConnection {
  /** Host name, or the address as written in the URL. */
  readonly host: string
  readonly port: number
  /** `unresolved`: DNS returned no address. */
  readonly outcome: 'dialled' | 'refused' | 'unresolved'
}

export interface FetchOptions {
  readonly signal: AbortSignal
  /** Default GET. */
  readonly method?: string
  readonly body?: Uint8Array | string
  /** Default `follow`, up to five redirects. A redirect that would send the body to another origin is always refused. */
  readonly redirect?: 'follow' | 'manual' | 'error'
  /** Maximum size of the body. Fails with `too_large`, before the first byte if the response declares its length. */
  readonly maxBytes: number
  /** Timeout from the call to the body's last byte, milliseconds. Infinity for a stream that only `idleMs` limits. */
  readonly timeoutMs: number
  /** Maximum time without a byte, milliseconds. Default 30,000. */
  readonly idleMs?: number
  /** Sent to the URL's origin only, not to another origin after a redirect. */
  readonly headers?: Readonly<Record<string, string>>
  /** The operator configured this URL, so it may be private and plain http. Its redirects are checked as usual. */
  readonly trusted?: boolean
  /** Awaited before the host is dialed. */
  readonly onConnect?: (connection: OutboundConnection) => void | Promise<void>
}

export interface Fetched {
  /** Status of the last hop. No status is treated as an error. */
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The body as received, not decompressed. Can be read once. Throws the same errors as `fetch`. */
  readonly body: AsyncIterable<Uint8Array>
  /** Must be called if the body is not read to its end. Idempotent. */
  close(): void
}

/** Remaining bytes, in both directions together. Shared by all connections of a run. */
export interface ByteBudget {
  bytes: number
  /** Message when the budget is spent. */
  readonly spent: string
}

export interface SandboxProxyTerms {
  readonly network: Network
  readonly budget: ByteBudget
  /** Awaited before a host is dialed, and for each refused host. An error that it throws refuses the connection. */
  readonly onConnect: (connection: OutboundConnection) => void | Promise<void>
  /** Credentials for requests to the hosts in `network.inject`. Without it such requests are refused. */
  readonly signIn?: CredentialSource
  /** Maximum time without a byte in either direction, milliseconds. Default 120,000. */
  readonly idleMs?: number
}

/** Returns the credential for one request to a host, or a sentence why there is none; the request is then refused. */
export type CredentialSource = (host: string, port: number) => Promise<InjectedCredential | string>

export interface InjectedCredential {
  /** Header fields that replace those of the request. */
  readonly headers: Readonly<Record<string, string>>
  /** Secrets that must not appear in the response. */
  readonly confidential: readonly string[]
}

/** An HTTP proxy for programs in a sandbox: CONNECT and plain HTTP, to hosts that the run's network and the guard allow. */
export interface SandboxProxy {
  /** Serves a connection made inside the sandbox: `sandbox.listen(3128, proxy.handle)`. */
  handle(connection: Duplex): void
  /** Certificate (PEM) of the authority under which it answers for the hosts of `network.inject`. Undefined if there are none. */
  readonly certificate: string | undefined
  /** The reason for the last refusal of a host, in a sentence; undefined if it was not refused. */
  refusalOf(host: string): string | undefined
  /** Closes all connections through it. Idempotent. */
  close(): void
}

export interface Egress {
  /** The reason why a URL is refused by itself, as words that follow its name ("must …"); undefined if it is not. */
  faultOf(url: string): string | undefined
  /** Throws EgressError, or the signal's reason if it aborts. */
  fetch(url: string, options: FetchOptions): Promise<Fetched>
  openProxy(terms: SandboxProxyTerms): SandboxProxy
  /** PEM certificates of the authorities that it trusts. Clients behind a proxy should trust them too. */
  trusted(): string
}

/** Options for every request of a library that uses the guard as its `fetch`. */
export type LibraryTerms = Pick<FetchOptions, 'signal' | 'maxBytes' | 'timeoutMs' | 'idleMs' | 'onConnect'>

type EgressErrorCode =
  | 'refused' // by this guard: the URL, or one that it redirects to
  | 'unreachable' // no such name, no connection, no trusted certificate, or the connection broke
  | 'too_large'
  | 'too_slow'
  | 'too_many_redirects'

/** `message` is a sentence for the caller. It names hosts, but never their addresses or a URL's path or query. */
export class EgressError extends Error {
  readonly code: EgressErrorCode
  constructor(code: EgressErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'EgressError'
    this.code = code
  }
}
