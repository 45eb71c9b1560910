/** A tool: what a model is told of it, and what happens when it is called. One file a tool. */

import type { MediaPart } from '../domain/message.ts'
import type { ToolDefinition } from '../models/port.ts'
import type { Sandbox } from '../sandbox/port.ts'

export interface ToolContext {
  /** The interaction's sandbox, made on first need. Throws SandboxError. */
  sandbox(): Promise<Sandbox>
  /** Names this call within the interaction, the same after a crash. */
  readonly key: string
  /** Milliseconds left until the run's deadline. */
  readonly remainingMs: () => number
  /** Output while it comes; may be called often, the recorder joins fragments. */
  readonly onOutput: (text: string) => void
  readonly signal: AbortSignal
  /** Whether images may be put before the model. */
  readonly vision: boolean
  /** Whether PDFs may be, whole. */
  readonly documents: boolean
  /** Bytes of output that one call may give the model. */
  readonly outputBytes: number
}

export interface ToolOutcome {
  /** What the model and the trace are told, failures included. */
  readonly output: string
  /** What the model is shown with it; kept in the interaction's files, so that a take-over shows it again. */
  readonly media?: readonly MediaPart[]
  /** The sandbox went while the tool ran: the next call needs a new one. */
  readonly sandboxLost?: boolean
}

export interface Tool {
  readonly definition: ToolDefinition
  /** A call may be asked for again after a crash: the sandbox knows it by its key, and nothing runs twice. */
  readonly keyed: boolean
  /**
   * Failures that the model can act on are outcomes; what is thrown is lost infrastructure (SandboxError `unavailable`,
   * `lost`) or a bug. Ends soon after `signal` aborts.
   */
  run(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolOutcome>
}
