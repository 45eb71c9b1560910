/**
 * What the frames say. The same requests go from the server to the host (with the sandbox they are for) and from the host
 * to a runner; answers come back by the request's id. An id names one request on one connection.
 *
 *     exec   → out…, live… → done    kill ends it            write → chunk (each acked) → commit | abort → done
 *     list   → entries… → done      lease → (nothing)        read  → chunk (each acked) → done;  abort → done
 *     env    → done
 *     spawn  → its stream, err… → done     kill ends it      listen → listening → accept… with a stream each;  abort → done
 *
 * A stream is chunks both ways, each acked, with `commit` (from outside) and `fin` (from inside) at the end of a direction
 * and `abort` for both; `conn` tells the streams of one request apart.
 *
 * Any of them may be answered by `error` instead, which ends it.
 */
import type { ExecEnd, Language, LimitHit, SandboxErrorCode, SandboxFacts, SandboxLimits, SandboxSpec } from './port.ts'

export type SandboxRequest =
  | { op: 'exec'; id: number; key: string; language: Language; timeoutMs: number; outputBytes: number }
  | { op: 'kill'; id: number }
  | { op: 'write'; id: number; path: string; mode: 'write' | 'append' }
  | { op: 'read'; id: number; path: string; maxBytes: number }
  | { op: 'list'; id: number; path: string; recursive: boolean; maxEntries: number }
  | { op: 'spawn'; id: number; argv: readonly string[]; env: object; cwd?: string; pipes: 'stdio' | 'fd34' }
  | { op: 'listen'; id: number; port: number }
  | { op: 'env'; id: number; variables: Readonly<Record<string, string>> }
  | { op: 'chunk' | 'ack' | 'commit' | 'abort'; id: number; conn?: number }
  | { op: 'lease'; id: number; ms: number }

/** Which sandbox a request is for, and by whose right. */
export interface Address {
  /** The interaction. */
  sandbox: string
  name: string
  epoch: number
}

export type HostRequest =
  | (SandboxRequest & Partial<Address>)
  | { op: 'hello'; id: number; fingerprint: string; settings: HostSettings }
  | { op: 'open'; id: number; spec: SandboxSpec }
  /** Without a name, all of the interaction's; without an epoch it is unconditional. */
  | { op: 'destroy'; id: number; sandbox: string; name?: string; epoch?: number }
  | { op: 'living' | 'facts' | 'close'; id: number }

/**
 * `out` is output that is settled: joined, the result. `replayed`: of a step that ran before this request was made;
 * `quiet`: it was shown already: both no news for whoever watches. `live` is for the watcher alone: lines that may change
 * yet, such as a progress bar.
 */
export type Reply =
  | { op: 'ready'; id: number; python: string }
  | { op: 'out'; id: number; replayed?: boolean; quiet?: boolean }
  | { op: 'live'; id: number }
  | { op: 'chunk' | 'ack' | 'fin' | 'accept'; id: number; conn?: number }
  | { op: 'err' | 'listening'; id: number }
  /** The payload is entries of a listing as JSON, with commas between them: `[` + payload + `]` parses. */
  | { op: 'entries'; id: number }
  | ({ op: 'done'; id: number } & Done)
  | { op: 'error'; id: number; code: SandboxErrorCode; message: string }

/** A frame's header without the id, which the connection adds. */
type WithoutId<Header> = Header extends { id: number } ? Omit<Header, 'id'> : never
export type RunnerRequestBody = WithoutId<SandboxRequest>
export type HostRequestBody = WithoutId<HostRequest>
export type ReplyBody = WithoutId<Reply>

/** What the end of a request carries, by the request. */
export type Done = Partial<ExecDone> & {
  /** Of `list`: there are more entries than were sent. */
  more?: boolean
  /** Of `open`: whether the sandbox was made now. */
  fresh?: boolean
  living?: string[]
  /** With `living`: how many are ready and unused. */
  warm?: number
  facts?: SandboxFacts
  /** Of `hello`: false where the host was started with another program or other settings that it cannot change. */
  welcome?: boolean
  /** Of `hello` and `close`: how many other clients the host has. */
  others?: number
}

export interface ExecDone {
  end: ExecEnd
  truncated: boolean
  hits?: LimitHit[]
  /** Of a runner: what is at its limit in the sandbox as the step ends. */
  full?: LimitHit[]
  durationMs: number
  sessionRestarted: boolean
}

/** What a client may change in a running host. */
export interface HostSettings {
  /** The limits that warm sandboxes are made with. */
  limits: SandboxLimits
  pool: number
  maxOpen: number
  /** How long `open` waits for room, milliseconds. */
  waitMs: number
  /** How long the host lives on with no client, milliseconds. */
  graceMs: number
}

export const CHUNK_BYTES = 256 * 1024
/** Chunks under way before one must be acknowledged: bounds memory on every hop without stopping other frames. */
export const CHUNK_WINDOW = 4
/** Of a stream, of which one sandbox may have hundreds: with the window, what a side that does not read costs each hop. */
export const STREAM_CHUNK_BYTES = 64 * 1024
/** Entries of one listing, as JSON; the runner has the same number. */
export const MAX_LIST_BYTES = 4 * 1024 * 1024
/** Of a spawned process's stderr; the runner has the same number. */
export const STDERR_BYTES = 256 * 1024
/** Connections that may be open at once on one listener; the runner has the same number. */
export const MAX_CONNECTIONS = 256
/** Code of one step, bytes; the runner keeps it in a small tmpfs while it runs. */
export const MAX_CODE_BYTES = 4 * 1024 * 1024
