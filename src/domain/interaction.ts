/** An interaction: what was asked (RunRequest), what it runs with (RunSpec), and its row (Interaction). */
import type { Labels, Policy, RunSettings, ToolName } from './agent.ts'
import type { RunError } from './errors.ts'
import type { Stage, Status, StopReason, Warning } from './event.ts'
import type { ContextLimits, RunLimits, SandboxLimits } from './limits.ts'
import type { RunMcpServer } from './mcp.ts'
import type { Network } from './network.ts'
import type { SkillPin } from './skill.ts'
import type { Usage } from './usage.ts'
import type { WebhookRequest } from './webhook.ts'

/** A JSON Schema, checked to compile when it was accepted. */
export type JsonSchema = Readonly<Record<string, unknown>>

export interface InlineFile {
  /** Relative path inside the workspace, checked. */
  readonly name: string
  readonly bytes: Uint8Array
  readonly mimeType?: string
}

/** An input file by URL. It is fetched before the first model call. */
export interface LinkedFile {
  /** Relative path inside the workspace, checked. */
  readonly name: string
  /** The URL as the caller sent it; its query may be a secret. Checked when the run is accepted. */
  readonly url: string
  readonly mimeType?: string
}

/** The fields of a request that its run keeps. */
interface RunTask {
  readonly instruction: string
  readonly agentId?: string
  /** Set only together with `agentId`. Undefined in a request: the newest. */
  readonly agentVersion?: number
  readonly responseFormat?: JsonSchema
  /** Part of the answer that `output` has. Undefined: all of it. */
  readonly output?: 'final'
  readonly previousInteractionId?: string
  readonly onDisconnect: 'continue' | 'cancel'
}

/** A caller's request, in the form that all API revisions share. A missing setting is the agent's, then the operator's. */
export interface RunRequest extends RunTask {
  readonly settings: RunSettings
  readonly labels: Labels
  readonly files: readonly (InlineFile | LinkedFile)[]
  readonly webhook?: WebhookRequest
  /** The decoder's warnings about ignored fields. */
  readonly warnings: readonly Warning[]
}

/** A file in the blob store. */
export interface StoredFile {
  readonly name: string
  /** The blob store's key. */
  readonly blob: string
  /** Bytes. */
  readonly size: number
  readonly mimeType: string
  /** Hexadecimal. */
  readonly sha256: string
}

/** Everything that a run needs, fixed at acceptance. Later changes to the agent or to the defaults do not affect it. */
export interface RunSpec extends RunTask, Omit<RunSettings, 'skills' | 'mcp'> {
  readonly model: string
  readonly tools: readonly ToolName[]
  readonly skills: readonly SkillPin[]
  readonly mcp: readonly RunMcpServer[]
  readonly network: Network
  /** Network of the browser if neither request nor agent chose one. Otherwise the browser uses `network`. */
  readonly browserNetwork?: Network
  readonly policy: RunLimits &
    Pick<Policy, 'maxCost'> & {
      readonly sandbox: SandboxLimits
      /** Absent in specs that were stored before the field existed. */
      readonly context?: ContextLimits & Pick<NonNullable<Policy['context']>, 'instructions'>
    }
  /** The first interaction of the conversation. Absent in those that were stored before the field existed. */
  readonly conversationId?: string
  readonly inputFiles: readonly StoredFile[]
  /** Files that are not fetched yet. Once fetched, they move to `inputFiles`, and their URLs are deleted. */
  readonly linkedFiles?: readonly (LinkedFile & Pick<StoredFile, 'blob'>)[]
  /** A webhook is sent when the run ends. */
  readonly webhook?: true
  /** W3C trace context of the request, if it was traced. The run's spans on any node are its children. */
  readonly traceparent?: string
  /** Id of the run that failed with a retryable error and released the Idempotency-Key that started this one. */
  readonly retryOf?: string
}

export interface Interaction {
  readonly id: string
  readonly projectId: string
  /** The API key that started it; a user's id if the console did. */
  readonly keyId: string
  readonly status: Status
  readonly stage: Stage
  readonly spec: RunSpec
  readonly labels: Labels
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly endedAt?: number
  readonly stopReason?: StopReason
  readonly error?: RunError
  /** Final usage; undefined while the interaction runs. */
  readonly usage?: Usage
  /** The number of the newest event. */
  readonly lastSeq: number
  readonly outputFiles: readonly StoredFile[]
}

/** The fields of an interaction in lists and webhooks. */
export type InteractionSummary = Omit<Interaction, 'outputFiles'>
