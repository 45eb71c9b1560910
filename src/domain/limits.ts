/** All limits with their defaults. The operator may change each of them (docs/configuration.md). */

import type { Network } from './network.ts'

export interface Range {
  readonly default: number
  readonly min: number
  readonly max: number
}

type Ranges<Values> = Readonly<Record<keyof Values, Range>>

/** Limits of one run that a caller sets within the operator's ranges. */
export interface RunLimits {
  /** Seconds of run time. */
  readonly maxTurnDuration: number
  /** Output tokens over the whole run, reasoning included. */
  readonly maxOutputTokens: number
  /** Seconds of one tool call. */
  readonly maxToolDuration: number
}

export const RUN_LIMITS = [
  'maxTurnDuration',
  'maxOutputTokens',
  'maxToolDuration',
] as const satisfies readonly (keyof RunLimits)[]

/** Resources of one sandbox. */
export interface SandboxLimits {
  readonly memoryMiB: number
  /** Cores, fractions allowed. */
  readonly cpus: number
  /** Processes and threads. */
  readonly pids: number
  readonly workspaceMiB: number
  /** Files, directories and links in the workspace, and as many in /tmp. */
  readonly files: number
  /** Output of one step that is kept, in bytes. The middle of longer output is cut and marked. */
  readonly outputBytes: number
}

/** When and how the conversation of a run is shortened to fit its model's context window. */
export interface ContextLimits {
  /** Share of the window at which it is shortened. */
  readonly compactAt: number
  /** Tokens of the latest messages that stay unchanged. */
  readonly keepTokens: number
}

export interface Limits extends Ranges<RunLimits> {
  /** Interactions a project may create in a minute. */
  readonly interactionsPerMinute: number
  /** All other calls of a project in a minute. */
  readonly callsPerMinute: number
  readonly runningPerProject: number
  readonly queuedPerProject: number
  /** Longest wait for a worker, in seconds. Then the interaction fails with `unavailable`. */
  readonly queueWaitS: number
  readonly bodyBytes: number
  /** Bytes of responses that a project's callers have not read yet, in one process. */
  readonly responseBytesPerProject: number
  /** Bytes of request bodies that a project's callers are sending, in one process. */
  readonly uploadBytesPerProject: number
  /** Open event streams, blocking calls, file downloads and uploads of a project, in one process. */
  readonly streamsPerProject: number
  /** All inline files of one request together, decoded, in bytes. */
  readonly inlineFilesBytes: number
  /** One file by URL, in bytes. */
  readonly fileBytes: number
  /** Timeout for a file by URL, from request to last byte, in seconds. */
  readonly fileFetchS: number
  /** All output files of one interaction together, in bytes. */
  readonly outputFilesBytes: number
  /** Output files of one interaction. */
  readonly outputFiles: number
  /** The names of all output files of one interaction together, in bytes of UTF-8. */
  readonly outputNamesBytes: number
  readonly retentionDays: number
  /** Days for which audit records of removed interactions are kept. */
  readonly auditRetentionDays: number
  readonly sandbox: Ranges<SandboxLimits>
  readonly context: Ranges<ContextLimits>
  /** Ceiling for the network of sandboxes. */
  readonly network: Network
  /** Network traffic of one run's sandboxes in both directions together, in bytes. */
  readonly networkBytes: number
  /** Model calls in one run. Stops a model that never ends. */
  readonly maxModelCalls: number
  readonly instructionChars: number
  readonly systemInstructionChars: number
  readonly tools: number
  readonly skills: number
  readonly mcp: number
  readonly files: number
  readonly labels: number
  readonly labelKeyChars: number
  readonly labelValueChars: number
  readonly jsonDepth: number
  /** Size of a skill's zip, and of all its files unpacked. */
  readonly skillBytes: number
  readonly skillFiles: number
  /** Versions of skills that a project may keep. */
  readonly skillVersions: number
}

const MIB = 1024 * 1024

export const DEFAULT_LIMITS: Limits = {
  interactionsPerMinute: 300,
  callsPerMinute: 600,
  runningPerProject: 10,
  queuedPerProject: 100,
  queueWaitS: 60,
  bodyBytes: 20 * MIB,
  responseBytesPerProject: 64 * MIB,
  uploadBytesPerProject: 64 * MIB,
  streamsPerProject: 1_000,
  inlineFilesBytes: 10 * MIB,
  fileBytes: 100 * MIB,
  fileFetchS: 600,
  outputFilesBytes: 100 * MIB,
  outputFiles: 1_000,
  outputNamesBytes: 128 * 1024,
  retentionDays: 30,
  auditRetentionDays: 365,
  maxTurnDuration: { default: 600, min: 1, max: 28_800 },
  maxOutputTokens: { default: 65_536, min: 1, max: 1_000_000 },
  maxToolDuration: { default: 3_600, min: 1, max: 28_800 },
  sandbox: {
    memoryMiB: { default: 512, min: 64, max: 512 },
    cpus: { default: 1, min: 0.1, max: 1 },
    pids: { default: 128, min: 16, max: 128 },
    workspaceMiB: { default: 256, min: 1, max: 256 },
    files: { default: 50_000, min: 100, max: 50_000 },
    outputBytes: { default: 65_536, min: 1_024, max: 65_536 },
  },
  context: {
    compactAt: { default: 0.8, min: 0.3, max: 0.95 },
    keepTokens: { default: 20_000, min: 0, max: 1_000_000 },
  },
  network: 'public',
  networkBytes: 1024 * MIB,
  maxModelCalls: 500,
  instructionChars: 200_000,
  systemInstructionChars: 100_000,
  tools: 128,
  skills: 20,
  mcp: 20,
  files: 100,
  labels: 16,
  labelKeyChars: 64,
  labelValueChars: 512,
  jsonDepth: 64,
  skillBytes: 30 * MIB,
  skillFiles: 1_000,
  skillVersions: 500,
}
