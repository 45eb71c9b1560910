/**
 * What a server lives through, as plain data: told by the rooms when it is over, heard by who watches (metrics, traces,
 * the log). Telling is synchronous, costs next to nothing, and never throws.
 *
 * `ms`: how long it took up to now, milliseconds. What callers and models wrote is in it only to be shown by who was
 * told to show it, through `redact`.
 */

import type { ErrorCode } from '../domain/errors.ts'
import type { StopReason, TerminalStatus } from '../domain/event.ts'
import type { RunSpec } from '../domain/interaction.ts'
import type { OutboundConnectionKind } from '../domain/outbound-connection.ts'
import type { TokenCount, Usage } from '../domain/usage.ts'
import type { WebhookState } from '../domain/webhook.ts'
import type { OutboundConnection } from '../egress/port.ts'
import type { ModelDescription, ModelOutcome, ModelRequest } from '../models/port.ts'
import type { SandboxErrorCode } from '../sandbox/port.ts'

export type Emit = (moment: TelemetryEvent) => void

/** A worker's time with an interaction. */
export interface RunName {
  readonly id: string
  readonly projectId: string
  readonly epoch: number
}

export type ToolEnding =
  | 'answered' // the tool ran; what it said may be a complaint to the model
  | 'denied' // a person did not agree
  | 'refused' // there is no such tool, or the arguments are no JSON object
  | 'interrupted' // the server or the sandbox went while it ran: nobody knows what came of it
  | 'stopped' // the run ended first

export type TelemetryEvent =
  | { readonly type: 'accepted'; readonly interactionId: string; readonly projectId: string }
  /** A worker has it. `waitedMs`: since it was accepted. `givenUp`: it has ended its workers too often, and is ended. */
  | {
      readonly type: 'claimed'
      readonly run: RunName
      readonly spec: RunSpec
      readonly waitedMs: number
      readonly givenUp: boolean
    }
  /** Its main sandbox is ready, with the input files in it. */
  | { readonly type: 'provisioned'; readonly run: RunName; readonly ms: number }
  /** A sandbox was asked for. `fresh`: made now, not taken up. `error`: there is none. */
  | {
      readonly type: 'sandbox_opened'
      readonly run: Pick<RunName, 'id' | 'epoch'>
      readonly name: string
      readonly fresh: boolean
      readonly error?: SandboxErrorCode
      readonly ms: number
    }
  /** `firstMs`: until it said anything. `cost`: US dollars; undefined where the model has no price. */
  | {
      readonly type: 'model_called'
      readonly run: RunName
      readonly model: ModelDescription
      readonly request: ModelRequest
      readonly outcome: ModelOutcome
      readonly tokens: TokenCount
      readonly cost: number | undefined
      readonly firstMs: number | undefined
      readonly redact: (text: string) => string
      readonly ms: number
    }
  /** A try failed, and there will be another. */
  | { readonly type: 'model_retried'; readonly model: string }
  | {
      readonly type: 'tool_called'
      readonly run: RunName
      readonly name: string
      readonly callId: string
      readonly args: Readonly<Record<string, unknown>>
      /** Redacted. */
      readonly output: string | undefined
      readonly ending: ToolEnding
      readonly redact: (text: string) => string
      readonly ms: number
    }
  /** Its output files are taken and its sandboxes gone. */
  | { readonly type: 'settled'; readonly run: RunName; readonly ms: number }
  /** The end is written; by whom: the run, or somebody outside (a cancellation, nobody took it). */
  | {
      readonly type: 'ended'
      readonly interactionId: string
      readonly run?: RunName
      readonly status: TerminalStatus
      readonly code?: ErrorCode
      readonly stopReason?: StopReason
      readonly usage: Usage
      /** Whether a webhook may be due. */
      readonly webhook: boolean
    }
  /** Of a project's budget for that month, `2026-11`; `spent` and `limit`: US dollars. Told once for all nodes. */
  | {
      readonly type: 'budget_passed'
      readonly projectId: string
      readonly month: string
      readonly percent: number
      readonly spent: string
      readonly limit: string
    }
  /** A worker has it no more. `lost`: to another one. `broken`: by a bug. */
  | { readonly type: 'left'; readonly run: RunName; readonly cause: LeavingCause; readonly ms: number }
  /** Events of interactions are durable. */
  | { readonly type: 'events_stored'; readonly count: number }
  /** From the asking for it to its being durable. */
  | { readonly type: 'database_written'; readonly outcome: 'done' | 'undone' | 'unavailable'; readonly ms: number }
  /** How many writes went into one transaction. */
  | { readonly type: 'database_committed'; readonly writes: number }
  /** A host outside is turned to on behalf of a run. */
  | {
      readonly type: 'contact_made'
      readonly kind: OutboundConnectionKind
      readonly outcome: OutboundConnection['outcome']
    }
  /** An attempt was made; `state`: how its webhook stands now. */
  | { readonly type: 'webhook_sent'; readonly state: WebhookState; readonly ms: number }
  /** `route`: its pattern, `none` where the address is no route. A stream's `ms` count until its last byte. */
  | {
      readonly type: 'http_answered'
      readonly requestId: string
      readonly method: string
      readonly route: string
      readonly status: number
      readonly ms: number
    }
  | { readonly type: 'stream_opened' }
  /** `slow`: the reader took nothing for too long, and was dropped. */
  | { readonly type: 'stream_closed'; readonly cause: 'whole' | 'gone' | 'slow' }

export type LeavingCause = 'ended' | 'cancelled' | 'lost' | 'shutdown' | 'broken'
