/**
 * The messages in the frames. The server sends requests to the host, with the address of a sandbox, and the host sends the
 * same requests to a runner. Replies carry the request's id, which is unique on its connection.
 *
 *     exec   → out…, live… → done    kill ends it            write → chunk (each acked) → commit | abort → done
 *     list   → entries… → done      lease → (nothing)        read  → chunk (each acked) → done;  abort → done
 *     env    → done                  job    → out… → done;  abort → done
 *     spawn  → its stream, err… → done     kill ends it      listen → listening → accept… with a stream each;  abort → done
 *
 * A stream is chunks in both directions, each acked. `commit` (from outside) and `fin` (from inside) end one direction,
 * `abort` ends both. `conn` identifies the streams of one request.
 *
 * Any request can be answered by `error` instead, which ends it.
 */
import type {
  ExecEnd,
  JobRefusal,
  JobState,
  Language,
  LimitHit,
  SandboxErrorCode,
  SandboxFacts,
  SandboxLimits,
  SandboxSpec,
} from './port.ts'

export type SandboxRequest =
  | ({ op: 'exec'; id: number; key: string; language: Language; timeoutMs: number } & OutputLimits)
  | { op: 'kill'; id: number }
  | { op: 'write'; id: number; path: string; mode: 'write' | 'append' }
  | { op: 'read'; id: number; path: string; maxBytes: number }
  | ({ op: 'job'; id: number } & JobAction & OutputLimits)
  | { op: 'list'; id: number; path: string; recursive: boolean; maxEntries: number }
  | { op: 'spawn'; id: number; argv: readonly string[]; env: object; cwd?: string; pipes: 'stdio' | 'fd34' }
  | { op: 'listen'; id: number; port: number }
  | { op: 'env'; id: number; variables: Readonly<Record<string, string>> }
  | { op: 'chunk' | 'ack' | 'commit' | 'abort'; id: number; conn?: number }
  | { op: 'lease'; id: number; ms: number }

/**
 * A request about a job, or without `job` for the list of all. The payload is the code or the input. A repeated key gets the
 * first answer: nothing is started or sent twice.
 */
export interface JobAction {
  key: string
  job?: string
  action: 'start' | 'look' | 'input' | 'kill'
  /** Language of a new job. */
  language?: Language
  timeoutMs?: number
  waitMs: number
}

/** Set by the host. */
export interface OutputLimits {
  outputBytes: number
  /** Path of the file that gets a long output, and its maximum size. */
  saveAs: string
  saveBytes: number
}

export const UNSET_LIMITS: OutputLimits = { outputBytes: 0, saveAs: '', saveBytes: 0 }

/** The sandbox that a request is for, and the worker's fencing token. */
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
  /** Without a name: all of the interaction's sandboxes. Without an epoch: unconditional. */
  | { op: 'destroy'; id: number; sandbox: string; name?: string; epoch?: number }
  | { op: 'living' | 'facts' | 'close'; id: number }

/**
 * `out` is settled output; all of it joined is the result. Followers need not see it again if it is `replayed` (the step ran
 * before this request) or `quiet` (it was sent as `live` already). `live` is for followers only: lines that may still
 * change, such as a progress bar.
 */
export type Reply =
  | { op: 'ready'; id: number; python: string }
  | { op: 'out'; id: number; replayed?: boolean; quiet?: boolean }
  | { op: 'live'; id: number }
  | { op: 'chunk' | 'ack' | 'fin' | 'accept'; id: number; conn?: number }
  | { op: 'err' | 'listening'; id: number }
  /** The payload is entries as JSON, separated by commas: `[` + payload + `]` is a JSON array. */
  | { op: 'entries'; id: number }
  | ({ op: 'done'; id: number } & Done)
  | { op: 'error'; id: number; code: SandboxErrorCode; message: string }

/** Header of a frame without the id, which the connection adds. */
type WithoutId<Header> = Header extends { id: number } ? Omit<Header, 'id'> : never
export type RunnerRequestBody = WithoutId<SandboxRequest>
export type HostRequestBody = WithoutId<HostRequest>
export type ReplyBody = WithoutId<Reply>

/** Result of a request; which fields are set depends on the request. */
export type Done = Partial<ExecDone> & {
  /** For `job`: its state, and the range of its output that `out` has. */
  job?: JobState
  from?: number
  to?: number
  jobs?: JobState[]
  refused?: JobRefusal | 'left'
  /** For `list`: there are more entries than were sent. */
  more?: boolean
  /** For `open`: the sandbox was created now. */
  fresh?: boolean
  living?: string[]
  /** With `living`: number of ready, unused sandboxes. */
  warm?: number
  facts?: SandboxFacts
  /** For `hello`: false if the host runs another program, or settings that it cannot change. */
  welcome?: boolean
  /** For `hello` and `close`: number of other clients of the host. */
  others?: number
}

export interface ExecDone {
  end: ExecEnd
  truncated: boolean
  hits?: LimitHit[]
  /** From a runner only: limits that are reached in the sandbox at the end of the step. */
  full?: LimitHit[]
  durationMs: number
  sessionRestarted: boolean
  /** The output was long, and this much of it is in the file. `cut`: not all of it. */
  saved?: { bytes: number; cut: boolean }
}

/** Settings that a client can change in a running host. */
export interface HostSettings {
  /** The limits that warm sandboxes are made with. */
  limits: SandboxLimits
  pool: number
  maxOpen: number
  /** Milliseconds that `open` waits while `maxOpen` sandboxes are in use. */
  waitMs: number
  /** Milliseconds after which a host without a client ends. */
  graceMs: number
}

export const CHUNK_BYTES = 256 * 1024
/** Chunks in flight before one must be acknowledged: bounds memory on every hop without blocking other frames. */
export const CHUNK_WINDOW = 4
/** Size of a stream's chunk. Smaller, because a sandbox may have hundreds of streams, each with a full window. */
export const STREAM_CHUNK_BYTES = 64 * 1024
/** Maximum size of one listing, as JSON; runner/listing.py has the same number. */
export const MAX_LIST_BYTES = 4 * 1024 * 1024
/** Bytes of a program's stderr that are sent; runner/programs.py has the same number. */
export const STDERR_BYTES = 256 * 1024
/** Maximum number of open connections of one listener; runner/listeners.py has the same number. */
export const MAX_CONNECTIONS = 256
/** Maximum size of a step's code, in bytes; the runner keeps it in a small tmpfs while the step runs. */
export const MAX_CODE_BYTES = 4 * 1024 * 1024
