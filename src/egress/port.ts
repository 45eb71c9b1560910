/**
 * The port to the world outside: every connection that is made because a caller said so goes through it. It dials public
 * addresses and what the operator opened (`egress.allowPrivate`), nothing else, whatever name, spelling or redirect leads
 * there.
 */
import type { Duplex } from 'node:stream'
import type { Network } from '../domain/network.ts'

/** A host that a fetch turned to, for the audit. Told once a redirect, before anything is dialled. */
export interface OutboundConnection {
  /** A name, or an address as the URL had it. */
  readonly host: string
  readonly port: number
  /** `unresolved`: it was looked up, and has no address. */
  readonly outcome: 'dialled' | 'refused' | 'unresolved'
}

export interface FetchOptions {
  readonly signal: AbortSignal
  /** Default GET. */
  readonly method?: string
  readonly body?: Uint8Array | string
  /** Default `follow`: up to five. One that would send a body to another origin is refused all the same. */
  readonly redirect?: 'follow' | 'manual' | 'error'
  /** Of the body. A longer one is cut off with `too_large`; before the first byte, where it declares its length. */
  readonly maxBytes: number
  /** From the call to the body's last byte, milliseconds; Infinity for a stream that only `idleMs` ends. */
  readonly timeoutMs: number
  /** Without a byte, milliseconds. Default 30,000. */
  readonly idleMs?: number
  /** Sent to the origin of the URL alone: a redirect to another one goes without. */
  readonly headers?: Readonly<Record<string, string>>
  /** The address is the operator's own, not a caller's: it may be private, and plain http. A redirect from it is judged as any. */
  readonly trusted?: boolean
  /** Awaited before the host is dialled. */
  readonly onConnect?: (connection: OutboundConnection) => void | Promise<void>
}

export interface Fetched {
  /** Of the last hop. Any status is an answer; what it means is the caller's to say. */
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** As it came, never decompressed; to be read once. Throws as `fetch` does. */
  readonly body: AsyncIterable<Uint8Array>
  /** For whoever does not read the body to its end. Idempotent. */
  close(): void
}

/** Bytes that may still pass, both ways together; shared by all that has it. */
export interface Budget {
  bytes: number
  /** What is said when they are spent. */
  readonly spent: string
}

export interface SandboxProxyTerms {
  readonly network: Network
  readonly budget: Budget
  /** Awaited before a host is dialled, and for each that is refused; what it throws refuses the connection. */
  readonly onConnect: (connection: OutboundConnection) => void | Promise<void>
  /** For requests to the hosts that `network.inject` names. Without it they are refused. */
  readonly signIn?: SignIn
  /** Without a byte either way, milliseconds. Default 120,000. */
  readonly idleMs?: number
}

/** What a request to a host is signed in with; asked anew for each. A sentence where there is nothing: it is refused then. */
export type SignIn = (host: string, port: number) => Promise<SignedIn | string>

export interface SignedIn {
  /** In place of what was sent under these names. */
  readonly headers: Readonly<Record<string, string>>
  /** What must not come back in the answer. */
  readonly confidential: readonly string[]
}

/** An HTTP proxy for the programs of a sandbox: CONNECT and plain HTTP, to what the network allows and the guard dials. */
export interface SandboxProxy {
  /** Takes a connection that was made inside: `sandbox.listen(3128, proxy.handle)`. */
  handle(connection: Duplex): void
  /** Of the authority in whose name it answers for hosts of `network.inject`, PEM; undefined where there are none. */
  readonly certificate: string | undefined
  /** Why a host was refused last, in a sentence; undefined where it was not. */
  refusalOf(host: string): string | undefined
  /** Ends all that goes through it. Idempotent. */
  close(): void
}

export interface Egress {
  /** What the address itself shows to be refused, in words that follow its name ("must …"); undefined where nothing does. */
  faultOf(url: string): string | undefined
  /** Throws EgressError; the signal's reason where that aborts. */
  fetch(url: string, options: FetchOptions): Promise<Fetched>
  openProxy(terms: SandboxProxyTerms): SandboxProxy
  /** Certificates of the authorities that it trusts, PEM: what clients behind a proxy are to trust. */
  trusted(): string
}

/** What holds for every request of a library that is handed a `fetch`. */
export type LibraryTerms = Pick<FetchOptions, 'signal' | 'maxBytes' | 'timeoutMs' | 'idleMs' | 'onConnect'>

type EgressErrorCode =
  | 'refused' // by this guard: the address, or one that it redirects to
  | 'unreachable' // no such name, no connection, no trusted certificate, or it broke off
  | 'too_large'
  | 'too_slow'
  | 'too_many_redirects'

/** `message` is a sentence for the caller: it names hosts, never the addresses behind them, nor a URL's path or query. */
export class EgressError extends Error {
  readonly code: EgressErrorCode
  constructor(code: EgressErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'EgressError'
    this.code = code
  }
}
