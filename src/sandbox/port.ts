/**
 * The port to sandboxes. A sandbox is a fresh, isolated Linux environment that belongs to one interaction, lives in a
 * process of its own (the sandbox host), and outlives the worker that opened it, so that the next worker can take it up.
 *
 * Paths are relative to the workspace (`/workspace` inside) or absolute inside the sandbox. The host never opens a path
 * of a sandbox itself: everything goes through the runner, which is PID 1 inside.
 */
import type { Duplex } from 'node:stream'
import type { SandboxLimits } from '../domain/limits.ts'

export type Language = 'python' | 'javascript' | 'bash'

export type { SandboxLimits }

/** A directory of the host's that is shown inside, read-only. */
export interface Mount {
  /** A directory of ours: its content was checked, nobody else can write to it. */
  readonly source: string
  /** Absolute, `/skills/pdf`; not below a place that is writable inside. */
  readonly target: string
}

/** How a cell is made. `browser`: as `code`, but Chromium can put its own sandbox up inside. */
export type Profile = 'code' | 'browser'

export interface SandboxSpec {
  readonly interactionId: string
  /** Which of the interaction's sandboxes. Default `main`, where its code runs; `browser`, `mcp-…` stand beside it. */
  readonly name?: string
  /** Default `code`. */
  readonly profile?: Profile
  /** Default none. */
  readonly mounts?: readonly Mount[]
  /**
   * Its first code will import numpy, pandas or matplotlib: one where they are loaded is taken, if it is to be had at once.
   * Any code runs in either. Default false.
   */
  readonly preloaded?: boolean
  /** The worker's fence: commands with a lower epoch than the newest one seen are refused. */
  readonly epoch: number
  /** Milliseconds from now after which the sandbox ends itself, whoever forgot it. */
  readonly lifetimeMs: number
  readonly limits: SandboxLimits
}

/** Why a step ended. `lost`: the sandbox is gone and nobody knows how far the step came. */
export type ExecEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'timeout'; readonly afterMs: number }
  /** `lost`: files held the memory, and with the step went the sandbox. */
  | { readonly kind: 'memory_limit'; readonly limitMiB: number; readonly lost?: true }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'lost' }

/** A limit that a step ran into, with its figure. */
export type LimitHit =
  | { readonly kind: 'memory'; readonly mebibytes: number }
  /** Of one process, where the sandbox as a whole has no limit. */
  | { readonly kind: 'process_memory'; readonly mebibytes: number }
  /** No further process or thread could be had. */
  | { readonly kind: 'processes'; readonly count: number }
  | { readonly kind: 'space'; readonly place: string; readonly mebibytes: number }
  | { readonly kind: 'files'; readonly place: string; readonly count: number }
  /** Space or files: something was full while it ran, and is no more. */
  | { readonly kind: 'room'; readonly mebibytes: number; readonly files: number }
  /** Open at once in one process. */
  | { readonly kind: 'open_files'; readonly count: number }
  /** It ran out of time while it was held back to its share. */
  | { readonly kind: 'processor'; readonly cores: number }

export interface ExecRequest {
  /** Names the step within the interaction. Asked again with the same key, the first result comes back: nothing runs twice. */
  readonly key: string
  readonly language: Language
  readonly code: string
  readonly timeoutMs: number
}

export interface ExecResult {
  /**
   * stdout and stderr as a terminal would show them in the end, decoded as UTF-8, capped by `outputBytes`: of a line that
   * was rewritten (a progress bar) its last state, no escape sequences.
   */
  readonly output: string
  readonly truncated: boolean
  readonly end: ExecEnd
  readonly durationMs: number
  /** The language's session had to be started anew: variables of earlier steps are gone. */
  readonly sessionRestarted: boolean
  /** What it ran into, where that is not its end already. Never empty. */
  readonly hits?: readonly LimitHit[]
}

export interface Entry {
  /** Relative to the directory that was listed, `/`-separated. */
  readonly path: string
  readonly type: 'file' | 'directory' | 'other'
  readonly size: number
  /** Why it, or what lies below it, can't be had: its name is not UTF-8, a directory closed to its owner. */
  readonly problem?: string
}

export interface Listing {
  /** Sorted by path. */
  readonly entries: readonly Entry[]
  /** There are more than were listed: `maxEntries`, or 4 MiB of entries, were reached. */
  readonly more: boolean
}

export interface SpawnRequest {
  /** Looked up in the sandbox's PATH. */
  readonly argv: readonly string[]
  /** On top of the sandbox's own environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Absolute; default `/workspace`. */
  readonly cwd?: string
  /** Where its end of the stream is: stdin and stdout, or descriptors 3 and 4. */
  readonly pipes: 'stdio' | 'fd34'
}

/** A program that lives beside the steps. It ends with every process below it. */
export interface SandboxProcess {
  /** What is written goes to the program, what it writes is read. Back-pressure holds on every hop. */
  readonly stream: Duplex
  /** Resolves when it is over and all that it wrote was read; `lost` where the sandbox went. */
  readonly exited: Promise<ExecEnd>
  /** Idempotent. */
  kill(): void
}

export interface Sandbox {
  /** True where `open` made it now; false where it took up one that an earlier worker had opened. */
  readonly fresh: boolean
  /**
   * Runs code in the interaction's session of that language. Never rejects for what the code does; `signal` ends the
   * process. `onOutput` hears the output while it comes; of a line that is being rewritten, a state now and then.
   */
  exec(request: ExecRequest, onOutput: (text: string) => void, signal: AbortSignal): Promise<ExecResult>
  /** Creates parent directories; atomic (temporary file, then rename), except for `append`. Throws SandboxError, or what the source of the bytes throws: then nothing is written. */
  writeFile(path: string, bytes: Uint8Array | AsyncIterable<Uint8Array>, mode: 'write' | 'append'): Promise<void>
  /** A regular file, no symlink at the end. Throws SandboxError `too_large` over `maxBytes`. */
  readFile(path: string, maxBytes: number): Promise<Uint8Array>
  /** As `readFile`, in pieces, as fast as they are taken. Begins when the first is asked for. */
  openFile(path: string, maxBytes: number): AsyncIterable<Uint8Array>
  /**
   * What is below `path`, at most `maxEntries` entries and 4 MiB; symlinks are listed as `other`, never followed. Throws
   * SandboxError.
   */
  list(path: string, options: { readonly recursive: boolean; readonly maxEntries: number }): Promise<Listing>
  /** Variables on top of the sandbox's own environment, for sessions and programs that start from now on. */
  setEnvironment(variables: Readonly<Record<string, string>>): Promise<void>
  /** Starts a program. A failure to start shows as its exit: 127 where there is no such program. `onStderr` hears its first 256 KiB. */
  spawn(request: SpawnRequest, onStderr?: (text: string) => void): SandboxProcess
  /**
   * Listens on 127.0.0.1:`port` inside; every connection that is made there arrives here. It ends with whoever asked for
   * it, so that the next one can. Throws SandboxError `unavailable` where the port is taken.
   */
  listen(port: number, onConnection: (connection: Duplex) => void): Promise<{ close(): Promise<void> }>
  /** Ends every process and removes what was kept. Resolves when it is checked to be gone; idempotent. */
  destroy(): Promise<void>
}

/** What this host enforces, for `doctor`, the start log and the console. */
export interface SandboxFacts {
  readonly driver: string
  /** How sandboxes are made here, where the driver has more than one way, and why so. */
  readonly made?: string | undefined
  /** What holds, in words: `memory: 512 MiB (cgroup v1)`. */
  readonly enforced: readonly string[]
  /** What does not, and what the operator can do about it. */
  readonly notEnforced: readonly string[]
  /** The attacks that the driver made on itself at start, each with whether it was refused. */
  readonly probes: readonly { readonly name: string; readonly refused: boolean; readonly detail?: string }[]
  /** What code finds inside, for the model's context: `Python 3.11 (standard library), Node 24, bash, git`. */
  readonly inside: string
  /** Chromium's binary, where there is one inside. */
  readonly browser: string | undefined
}

export interface Sandboxes {
  /** Creates the interaction's sandbox of that name, or takes up the one that still lives. Throws SandboxError `unavailable`. */
  open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>
  /** Ends all of the interaction's sandboxes wherever they came from. Resolves when no process of them is left; idempotent. */
  destroy(interactionId: string): Promise<void>
  /** The interactions that have a living sandbox: for the reaper. */
  living(): Promise<string[]>
  /** `open`: interactions that have any; `warm`: sandboxes that are ready and unused. */
  counts(): Promise<{ readonly open: number; readonly warm: number }>
  facts(): Promise<SandboxFacts>
  close(): Promise<void>
}

export type SandboxErrorCode =
  | 'unavailable' // no sandbox to be had now
  | 'not_found'
  | 'not_a_file' // a directory, a symlink, a device, …
  | 'too_large'
  | 'no_space'
  | 'invalid_path'
  | 'denied' // read-only or not permitted
  | 'lost' // the sandbox is gone
  | 'stale' // a newer epoch owns the sandbox

export class SandboxError extends Error {
  readonly code: SandboxErrorCode
  constructor(code: SandboxErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'SandboxError'
    this.code = code
  }
}
