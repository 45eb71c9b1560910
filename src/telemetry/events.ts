/**
 * Telemetry events: plain data that the server's parts emit when something has happened, for metrics, traces and the log.
 * Emitting is synchronous, cheap and never throws.
 *
 * `ms`: duration in milliseconds. Content of callers and models is only shown if the operator asks for it, and through `redact`.
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

export type Emit = (event: TelemetryEvent) => void

/** One worker's run of an interaction. */
export interface RunName {
  readonly id: string
  readonly projectId: string
  readonly epoch: number
}

export type ToolEnding =
  | 'answered' // the tool ran; its output may be an error message for the model
  | 'denied' // a person denied the call
  | 'refused' // the tool does not exist, or the arguments are not a JSON object
  | 'interrupted' // the server or the sandbox failed during the call: the outcome is unknown
  | 'stopped' // the run ended first

export type TelemetryEvent =
  | { readonly type: 'accepted'; readonly interactionId: string; readonly projectId: string }
  /** A worker has claimed it. `waitedMs`: since it was accepted. `givenUp`: it crashed its workers too often and is ended. */
  | {
      readonly type: 'claimed'
      readonly run: RunName
      readonly spec: RunSpec
      readonly waitedMs: number
      readonly givenUp: boolean
    }
  /** The main sandbox is ready and has the input files. */
  | { readonly type: 'provisioned'; readonly run: RunName; readonly ms: number }
  /** A sandbox was requested. `fresh`: created now, not resumed. `error`: it could not be opened. */
  | {
      readonly type: 'sandbox_opened'
      readonly run: Pick<RunName, 'id' | 'epoch'>
      readonly name: string
      readonly fresh: boolean
      readonly error?: SandboxErrorCode
      readonly ms: number
    }
  /** `firstMs`: time until the first output. `cost`: US dollars; undefined if the model has no price. */
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
  /** An attempt failed and will be retried. */
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
  /** The output files are stored and the sandboxes are gone. */
  | { readonly type: 'settled'; readonly run: RunName; readonly ms: number }
  /** The end is stored. Without `run`, the run did not write it itself (a cancellation, or no worker claimed it). */
  | {
      readonly type: 'ended'
      readonly interactionId: string
      readonly run?: RunName
      readonly status: TerminalStatus
      readonly code?: ErrorCode
      readonly stopReason?: StopReason
      readonly usage: Usage
      /** Whether a webhook may have to be sent. */
      readonly webhook: boolean
    }
  /** A part of a project's budget for `month` (`2026-11`) is spent. `spent`, `limit`: US dollars. Emitted once for all nodes. */
  | {
      readonly type: 'budget_passed'
      readonly projectId: string
      readonly month: string
      readonly percent: number
      readonly spent: string
      readonly limit: string
    }
  /** A worker has stopped working on it. `lost`: another worker has it. `broken`: a bug. */
  | { readonly type: 'left'; readonly run: RunName; readonly cause: LeavingCause; readonly ms: number }
  /** Events of interactions were stored. */
  | { readonly type: 'events_stored'; readonly count: number }
  /** A database write. `ms`: from the request until it is durable. */
  | { readonly type: 'database_written'; readonly outcome: 'done' | 'undone' | 'unavailable'; readonly ms: number }
  /** A transaction with this number of writes was committed. */
  | { readonly type: 'database_committed'; readonly writes: number }
  /** A run connects to a host. */
  | {
      readonly type: 'contact_made'
      readonly kind: OutboundConnectionKind
      readonly outcome: OutboundConnection['outcome']
    }
  /** A webhook attempt was made. `state`: the webhook's state after it. */
  | { readonly type: 'webhook_sent'; readonly state: WebhookState; readonly ms: number }
  /** `route`: the route's pattern, or `none`. For a stream, `ms` is the time until its last byte. */
  | {
      readonly type: 'http_answered'
      readonly requestId: string
      readonly method: string
      readonly route: string
      readonly status: number
      readonly ms: number
    }
  | { readonly type: 'stream_opened' }
  /** `slow`: the reader read nothing for too long and was disconnected. */
  | { readonly type: 'stream_closed'; readonly cause: 'whole' | 'gone' | 'slow' }

export type LeavingCause = 'ended' | 'cancelled' | 'lost' | 'shutdown' | 'broken'
