/**
 * The port for tools: what a tool is, what a call gets, and how providers offer tools to a run. A provider is opened once for
 * each run.
 */

import type { ToolName } from '../domain/agent.ts'
import type { Warning } from '../domain/event.ts'
import type { RunSpec } from '../domain/interaction.ts'
import type { FullResult } from '../domain/long-result.ts'
import type { MediaPart } from '../domain/message.ts'
import type { Network } from '../domain/network.ts'
import type { OutboundConnectionKind } from '../domain/outbound-connection.ts'
import type { OutboundConnection, SandboxProxy } from '../egress/port.ts'
import type { ToolDefinition } from '../models/port.ts'
import type { Sandbox, SandboxSpec } from '../sandbox/port.ts'
import type { Log } from '../telemetry/log.ts'

export interface ToolContext {
  /** The interaction's sandbox, created on first use; then `preloaded` (SandboxSpec) applies if possible. Throws SandboxError. */
  sandbox(preloaded?: boolean): Promise<Sandbox>
  /** Identifies this call within the interaction. The same again after a crash. */
  readonly key: string
  /** Milliseconds until the call's own limit or the run's deadline, whichever is first. */
  readonly remainingMs: () => number
  /** The call's own limit (policy.maxToolDuration). Together with `remainingMs` it shows which of the two limits was reached. */
  readonly maxToolMs: number
  /** Streams output. May be called often: the recorder coalesces fragments. */
  readonly onOutput: (text: string) => void
  readonly signal: AbortSignal
  /** The model accepts images. */
  readonly vision: boolean
  /** The model accepts whole PDFs. */
  readonly documents: boolean
  /** Maximum output of one call, in bytes. */
  readonly outputBytes: number
  /** The result is for code in the sandbox: structured content is returned as JSON, and no content as an empty text. */
  readonly forCode?: boolean
}

export interface ToolOutcome {
  /** The result for the model and the trace, failures included. */
  readonly output: string
  /** The file in the sandbox that has the whole of a long `output`, which then is its beginning and end. */
  readonly full?: FullResult
  /** Images and documents that the model gets with the result. Stored, so that the model gets them again after a crash. */
  readonly media?: readonly MediaPart[]
  /** The sandbox was lost while the tool ran: the next call needs a new one. */
  readonly sandboxLost?: boolean
  /** The MCP server, or the connection to it, reported an error. */
  readonly failed?: boolean
  /** `output` is JSON, for code. */
  readonly isJson?: boolean
}

/**
 * Concurrency of the calls of one turn. `alone`: none beside it. `shared`: beside any call that is not `alone`.
 * `session:…`: like `shared`, but calls of one session run one after another.
 */
export type Lane = 'alone' | 'shared' | `session:${string}`

export interface Tool {
  readonly definition: ToolDefinition
  /** After a crash the call is sent to the sandbox again, which knows its key and does not run it twice. */
  readonly keyed: boolean
  /** The call is idempotent: after a crash it is run again. */
  readonly repeatable?: boolean
  /**
   * The result comes from outside the sandbox and may be long: the engine truncates it, and writes it to a file in the
   * sandbox if the model can read one.
   */
  readonly external?: boolean
  /** A person must approve each call. Until then the run is in stage `requires_action`. */
  readonly needsApproval?: boolean
  /** The tool of an MCP server, by the server's own name. */
  readonly mcp?: { readonly server: string; readonly tool: string; readonly title?: string }
  /** The lane of a call. Default: `alone`. */
  lane?(args: Readonly<Record<string, unknown>>): Lane
  /**
   * Failures that the model can act on are outcomes. Throws only for lost infrastructure (SandboxError `unavailable`,
   * `lost`) and bugs. Ends soon after `signal` aborts.
   */
  run(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolOutcome>
}

/** The part of a run that tool providers may use. */
export interface RunScope {
  readonly interactionId: string
  readonly projectId: string
  readonly spec: RunSpec
  /** Aborts when the run ends: deadline, cancellation, lost lease, shutdown. */
  readonly signal: AbortSignal
  /** Milliseconds left until the run's deadline. */
  readonly remainingMs: () => number
  /** The model accepts images. */
  readonly vision: boolean
  /** The model accepts whole PDFs. */
  readonly documents: boolean
  /** The run's sandbox, created on first use. Throws SandboxError. */
  openSandbox(): Promise<Sandbox>
  /** Opens another sandbox for the run, by name, or finds it if it is still running. Ends with the run. Throws SandboxError. */
  openCompanion(companion: Companion): Promise<Sandbox>
  /** Gives the programs of a companion the access that `network` allows, through a proxy in their environment. Throws SandboxError. */
  connectCompanion(sandbox: Sandbox, kind: OutboundConnectionKind, network: Network): Promise<void>
  /** Opens a proxy for the programs of a companion: `sandbox.listen(3128, proxy.handle)`. Ends with the run. */
  openProxy(kind: OutboundConnectionKind, network: Network): SandboxProxy
  /** The `onConnect` for the egress guard: writes each host to the run's audit before it is dialed. */
  audit(kind: OutboundConnectionKind): (connection: OutboundConnection) => Promise<void>
  /** Redacts these texts from tool results and warnings from now on. */
  conceal(secrets: readonly string[]): void
  /** Adds a warning to the run's result. */
  warn(warning: Warning): void
  readonly log: Log
}

/** A further sandbox of a run. Limits that are left out are the run's. */
export type Companion = Pick<SandboxSpec, 'profile' | 'mounts'> & {
  readonly name: string
  readonly limits?: Partial<SandboxSpec['limits']>
}

/** The tools that one provider gives a run. */
export interface ToolSource {
  /** Read before each turn: the list may change during the run. */
  tools(): readonly Tool[]
  /** Text for the system prompt, in addition to the tools' descriptions. */
  readonly about?: string
  /** Called once, when this worker is done with the run. Sandboxes are ended separately. Must not reject. */
  close(): Promise<void>
}

export interface ToolProvider {
  /** Tool names that a run may enable. A name that no provider offers becomes a warning. */
  readonly offers: readonly ToolName[]
  /**
   * Returns undefined if the run enables none of these tools. Unavailable tools are warnings, and the run continues without
   * them; an error fails the run. Ends soon after the run's signal aborts.
   */
  open(run: RunScope): Promise<ToolSource | undefined>
}
