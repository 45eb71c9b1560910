/**
 * The port to sandboxes. A sandbox is a fresh, isolated Linux environment that belongs to one interaction, lives in a
 * process of its own (the sandbox host), and outlives the worker that opened it, so that the next worker can resume it.
 *
 * Paths are relative to the workspace (`/workspace` inside) or absolute inside the sandbox. The host never opens a path
 * of a sandbox itself: all file operations go through the runner, which is PID 1 inside.
 */
import type { Duplex } from 'node:stream'
import type { SandboxLimits } from '../domain/limits.ts'

export const LANGUAGES = ['python', 'javascript', 'bash'] as const
export type Language = (typeof LANGUAGES)[number]

export type { SandboxLimits }

/** A directory of the host that is mounted inside, read-only. */
export interface Mount {
  /** A directory that only Errand can write to, with checked content. */
  readonly source: string
  /** Absolute, such as `/skills/pdf`. Must not be below a path that is writable inside. */
  readonly target: string
}

/** Kind of isolation. `browser`: the same as `code`, except that Chromium can set up its own sandbox inside. */
export type Profile = 'code' | 'browser'

export interface SandboxSpec {
  readonly interactionId: string
  /** Name among the interaction's sandboxes. Default `main`, where its code runs; others are `browser` and `mcp-…`. */
  readonly name?: string
  /** Default `code`. */
  readonly profile?: Profile
  /** Default none. */
  readonly mounts?: readonly Mount[]
  /**
   * Prefers a sandbox with numpy, pandas and matplotlib loaded, if one is available at once: the first code will import
   * them. All code runs in either kind. Default false.
   */
  readonly preloaded?: boolean
  /** The worker's fencing token: the host refuses commands with a lower epoch than the newest that it has seen. */
  readonly epoch: number
  /** Milliseconds from now after which the sandbox ends itself, even if no worker ends it. */
  readonly lifetimeMs: number
  readonly limits: SandboxLimits
}

/** Why a step ended. `lost`: the sandbox is gone, and it is unknown how far the step came. */
export type ExecEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'timeout'; readonly afterMs: number }
  /** `lost`: files used up the memory, so the sandbox ended with the step. */
  | { readonly kind: 'memory_limit'; readonly limitMiB: number; readonly lost?: true }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'lost' }

/** A limit that a step reached, with its value. */
export type LimitHit =
  | { readonly kind: 'memory'; readonly mebibytes: number }
  /** The memory limit of one process, on hosts where the sandbox as a whole has none. */
  | { readonly kind: 'process_memory'; readonly mebibytes: number }
  /** No further process or thread could be started. */
  | { readonly kind: 'processes'; readonly count: number }
  | { readonly kind: 'space'; readonly place: string; readonly mebibytes: number }
  | { readonly kind: 'files'; readonly place: string; readonly count: number }
  /** A directory was full during the step but has room again. It is unknown which one, and whether space or files ran out. */
  | { readonly kind: 'room'; readonly mebibytes: number; readonly files: number }
  /** Files that one process may have open. */
  | { readonly kind: 'open_files'; readonly count: number }
  /** The step timed out while it was throttled to its share of the processor. */
  | { readonly kind: 'processor'; readonly cores: number }

export interface ExecRequest {
  /** Idempotency key within the interaction: a repeated request returns the first result and runs nothing. */
  readonly key: string
  readonly language: Language
  readonly code: string
  readonly timeoutMs: number
}

export interface SavedOutput {
  readonly path: string
  readonly bytes: number
  /** The file has only the beginning of the output: its maximum size or the free space was reached. */
  readonly cut: boolean
}

export interface ExecResult {
  /**
   * stdout and stderr as a terminal shows them in the end, decoded as UTF-8 and capped by `outputBytes`: a progress bar in
   * its last state, no escape sequences.
   */
  readonly output: string
  readonly truncated: boolean
  /** The file in the sandbox with the whole output, if it is longer than LONG_RESULT_BYTES or `outputBytes`. */
  readonly saved?: SavedOutput
  readonly end: ExecEnd
  readonly durationMs: number
  /** The language's session was restarted: variables of earlier steps are gone. */
  readonly sessionRestarted: boolean
  /** Limits that the step reached, except one that `end` already names. Never empty. */
  readonly hits?: readonly LimitHit[]
}

/** A program that runs in the background, beside the sessions. It ends with the sandbox. */
export interface JobState {
  readonly id: string
  readonly language: Language
  /** Undefined while it runs. `cancelled`: it was killed by a request. */
  readonly end?: ExecEnd
  /** Milliseconds that it has run. */
  readonly ms: number
  /** Bytes that it has printed. */
  readonly bytes: number
  /** Its output in the file: all of it, or if `cut` the beginning. */
  readonly saved: { readonly bytes: number; readonly cut: boolean }
}

export interface JobRequest {
  /** Idempotency key within the interaction: a repeated request starts and sends nothing, and gets the same output. */
  readonly key: string
  readonly job: string
  /** Starts the job. The timeout kills it; default none. */
  readonly start?: { readonly language: Language; readonly code: string; readonly timeoutMs?: number }
  /** Text for its stdin. */
  readonly input?: string
  readonly kill?: boolean
  /** The answer comes when the job has ended, has paused after new output, or after this time. */
  readonly waitMs: number
}

/** `too_many` run. `not_started`: no process could be made. `unread`: it does not read its input. `closed`: its input is. */
export const JOB_REFUSALS = ['unknown', 'too_many', 'not_started', 'unread', 'closed'] as const
export type JobRefusal = (typeof JOB_REFUSALS)[number]

export interface JobReport {
  readonly state: JobState
  /** Output since the last report, as a terminal shows it, capped by `outputBytes`. */
  readonly output: string
  /** The output is bytes `from` to `to` of what the job has printed. */
  readonly from: number
  readonly to: number
  /** The file in the sandbox with its output from the start. */
  readonly path: string
}

export interface Entry {
  /** Relative to the listed directory, `/`-separated. */
  readonly path: string
  readonly type: 'file' | 'directory' | 'other'
  readonly size: number
  /** Why it cannot be read or listed: its name is not UTF-8, or its owner may not open the directory. */
  readonly problem?: string
}

export interface Listing {
  /** Sorted by path. */
  readonly entries: readonly Entry[]
  /** The list is truncated: `maxEntries` or 4 MiB of entries were reached. */
  readonly more: boolean
}

export interface SpawnRequest {
  /** The program is looked up in the sandbox's PATH. */
  readonly argv: readonly string[]
  /** Added to the sandbox's own environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Absolute; default `/workspace`. */
  readonly cwd?: string
  /** The program's end of the stream: stdin and stdout, or descriptors 3 and 4. */
  readonly pipes: 'stdio' | 'fd34'
}

/** A program that runs beside the steps. It ends with all its descendants. */
export interface SandboxProcess {
  /** The program's input and output, with back-pressure on every hop. */
  readonly stream: Duplex
  /** Resolves when the program has ended and all its output was read; `lost` if the sandbox ended. */
  readonly exited: Promise<ExecEnd>
  /** Idempotent. */
  kill(): void
}

export interface Sandbox {
  /** True if `open` created it; false if it resumed one that an earlier worker had opened. */
  readonly fresh: boolean
  /**
   * Runs code in the interaction's session of that language. Never rejects because of what the code does; `signal` ends the
   * process. `onOutput` receives the output as it is written; progress bars only from time to time.
   */
  exec(request: ExecRequest, onOutput: (text: string) => void, signal: AbortSignal): Promise<ExecResult>
  /** Starts a background job, or waits for one, writes to it or ends it. Throws SandboxError `lost`. */
  job(request: JobRequest, signal: AbortSignal): Promise<JobReport | { readonly refused: JobRefusal }>
  /** The running jobs, and the newest of those that have ended. */
  jobs(): Promise<readonly JobState[]>
  /**
   * Creates parent directories. Atomic (temporary file, then rename), except for `append`. Throws SandboxError, or the
   * error of the source of the bytes; nothing is written then.
   */
  writeFile(path: string, bytes: Uint8Array | AsyncIterable<Uint8Array>, mode: 'write' | 'append'): Promise<void>
  /** Reads a regular file; does not follow a symlink. Throws SandboxError `too_large` over `maxBytes`. */
  readFile(path: string, maxBytes: number): Promise<Uint8Array>
  /** Reads a file as `readFile` does, in chunks with back-pressure. Begins with the first `next()`. */
  openFile(path: string, maxBytes: number): AsyncIterable<Uint8Array>
  /**
   * Lists the entries below `path`, at most `maxEntries` and 4 MiB. Symlinks are listed as `other` and never followed.
   * Throws SandboxError.
   */
  list(path: string, options: { readonly recursive: boolean; readonly maxEntries: number }): Promise<Listing>
  /** Adds variables to the environment of sessions and programs that start from now on. */
  setEnvironment(variables: Readonly<Record<string, string>>): Promise<void>
  /** Starts a program. If it cannot start, its exit code says so: 127 if it does not exist. `onStderr` receives the first 256 KiB. */
  spawn(request: SpawnRequest, onStderr?: (text: string) => void): SandboxProcess
  /**
   * Listens on 127.0.0.1:`port` inside and hands over every connection. It ends with its client's connection to the host,
   * so that the next worker can listen. Throws SandboxError `unavailable` if the port is taken.
   */
  listen(port: number, onConnection: (connection: Duplex) => void): Promise<{ close(): Promise<void> }>
  /** Ends every process and removes all files. Resolves after verifying that it is gone. Idempotent. */
  destroy(): Promise<void>
}

/** Facts about the isolation on this host, for `doctor`, the start log and the console. */
export interface SandboxFacts {
  readonly driver: string
  /** The variant of the driver that is used, and why, if it has several. */
  readonly made?: string | undefined
  /** Limits and walls that are enforced: `memory: 512 MiB (cgroup v1)`. */
  readonly enforced: readonly string[]
  /** Limits that are not enforced, and what the operator can do about it. */
  readonly notEnforced: readonly string[]
  /** The attacks of the self-test at start. */
  readonly probes: readonly { readonly name: string; readonly refused: boolean; readonly detail?: string }[]
  /** Languages and programs inside, for the model's context: `Python 3.11 (standard library), Node 24, bash, git`. */
  readonly inside: string
  /** Path of Chromium's binary inside, if there is one. */
  readonly browser: string | undefined
}

export interface Sandboxes {
  /** Creates the interaction's sandbox of that name, or resumes the live one. Throws SandboxError `unavailable`. */
  open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>
  /** Ends all of the interaction's sandboxes, whichever worker opened them. Resolves when no process is left. Idempotent. */
  destroy(interactionId: string): Promise<void>
  /** The interactions that have a live sandbox, for the reaper. */
  living(): Promise<string[]>
  /** `open`: number of interactions with a sandbox; `warm`: number of ready, unused sandboxes. */
  counts(): Promise<{ readonly open: number; readonly warm: number }>
  facts(): Promise<SandboxFacts>
  close(): Promise<void>
}

export type SandboxErrorCode =
  | 'unavailable' // no sandbox can be made now
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
