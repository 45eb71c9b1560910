/**
 * A tool: what a model is told of it, and what happens when it is called. Where a run's tools come from: providers, each
 * opened for the run.
 */

import type { ToolName } from '../domain/agent.ts'
import type { Warning } from '../domain/event.ts'
import type { RunSpec } from '../domain/interaction.ts'
import type { MediaPart } from '../domain/message.ts'
import type { Network } from '../domain/network.ts'
import type { OutboundConnectionKind } from '../domain/outbound-connection.ts'
import type { OutboundConnection, SandboxProxy } from '../egress/port.ts'
import type { ToolDefinition } from '../models/port.ts'
import type { Sandbox, SandboxSpec } from '../sandbox/port.ts'
import type { Log } from '../telemetry/log.ts'

export interface ToolContext {
  /** The interaction's sandbox, made on first need, then `preloaded` (SandboxSpec) if it can be. Throws SandboxError. */
  sandbox(preloaded?: boolean): Promise<Sandbox>
  /** Names this call within the interaction, the same after a crash. */
  readonly key: string
  /** Milliseconds left of this call: until its own limit or the run's deadline, whichever comes first. */
  readonly remainingMs: () => number
  /** Its own limit, policy.maxToolDuration, whole: to tell which of the two it was. */
  readonly maxToolMs: number
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
  /** It changes nothing, or nothing more when it is done again: after a crash it is simply run again. */
  readonly repeatable?: boolean
  /** A person has to agree before each call; until then the run stands in stage `requires_action`. */
  readonly needsApproval?: boolean
  /**
   * Failures that the model can act on are outcomes; what is thrown is lost infrastructure (SandboxError `unavailable`,
   * `lost`) or a bug. Ends soon after `signal` aborts.
   */
  run(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolOutcome>
}

/** What a provider of tools is given of the run that it is opened for. */
export interface RunScope {
  readonly interactionId: string
  readonly projectId: string
  readonly spec: RunSpec
  /** Of the run: its deadline, its cancellation, a lost lease, shutdown. */
  readonly signal: AbortSignal
  /** Milliseconds left until the run's deadline. */
  readonly remainingMs: () => number
  /** Whether images may be put before the model. */
  readonly vision: boolean
  /** Whether PDFs may be, whole. */
  readonly documents: boolean
  /** The run's sandbox, made on first need. Throws SandboxError. */
  openSandbox(): Promise<Sandbox>
  /** A sandbox beside it, by its name: made now, or the one that still lives. Gone with the run at the latest. Throws SandboxError. */
  openCompanion(companion: Companion): Promise<Sandbox>
  /** Gives the programs of a companion what `network` allows, by the proxy that their environment then names. Throws SandboxError. */
  connectCompanion(sandbox: Sandbox, kind: OutboundConnectionKind, network: Network): Promise<void>
  /** A proxy for the programs of a companion: `sandbox.listen(3128, proxy.handle)`. It ends with the run at the latest. */
  openProxy(kind: OutboundConnectionKind, network: Network): SandboxProxy
  /** What to hand to the guard as `onConnect`: each host that is turned to stands in the run's audit before it is dialled. */
  audit(kind: OutboundConnectionKind): (connection: OutboundConnection) => Promise<void>
  /** From now on these texts are not shown: not in what tools answer, not in warnings, not to the model. */
  conceal(secrets: readonly string[]): void
  /** Told to the caller with the run's other warnings. */
  warn(warning: Warning): void
  readonly log: Log
}

/** `limits`: what is left out is the run's own. */
export type Companion = Pick<SandboxSpec, 'profile' | 'mounts'> & {
  readonly name: string
  readonly limits?: Partial<SandboxSpec['limits']>
}

/** Some of a run's tools. */
export interface ToolSource {
  /** Asked anew before each turn: the list may change while the run goes on. */
  tools(): readonly Tool[]
  /** What the model is told beforehand, beside the tools' own descriptions. */
  readonly about?: string
  /** Called once, when the run is over here; what it holds in sandboxes ends with them. Must not reject. */
  close(): Promise<void>
}

export interface ToolProvider {
  /** Tools of the specification that a run may enable; a name that no provider offers is told as a warning. */
  readonly offers: readonly ToolName[]
  /**
   * Undefined where the run has no use for it. What can't be had is a warning, and the run goes on without it; what is
   * thrown fails the run. Ends soon after the run's signal aborts.
   */
  open(run: RunScope): Promise<ToolSource | undefined>
}
