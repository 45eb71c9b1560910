/**
 * The events of an interaction's log. The log *is* the interaction: trace, output, usage and status are computed from it
 * (fold.ts), and a stream sends its events in order. Nothing is shown before it is stored here.
 *
 * Each entry of the trace has its own `step`, counted from 1.
 */
import type { ErrorCode } from './errors.ts'
import type { FullResult } from './long-result.ts'
import type { Usage } from './usage.ts'

export type Status = 'running' | 'completed' | 'failed' | 'cancelled'
export type TerminalStatus = Exclude<Status, 'running'>

/** Refines `running`. */
export type Stage = 'queued' | 'provisioning' | 'working' | 'requires_action' | 'settling'

export type StopReason =
  | 'end_turn'
  | 'max_output_tokens'
  | 'max_cost'
  | 'budget_exceeded'
  | 'max_model_calls'
  | 'max_turn_duration'
  | 'content_filter'

export interface Warning {
  readonly code: string
  /** The request field it is about, where there is one. */
  readonly param?: string
  readonly message: string
}

/** A limit of a run that is near. `left` is in seconds, output tokens, US dollars or model calls. */
export interface Notice {
  readonly kind: 'time' | 'tokens' | 'cost' | 'calls'
  readonly left: number
}

export type RunEvent =
  | { readonly type: 'reasoning_started'; readonly step: number; readonly content: string }
  | { readonly type: 'reasoning_delta'; readonly step: number; readonly text: string }
  | {
      readonly type: 'tool_call'
      readonly step: number
      readonly name: string
      readonly args: Readonly<Record<string, unknown>>
      /** Unique among the calls of a turn. A result belongs to the latest call with its id. Old logs have none. */
      readonly callId?: string
      /** Number of the turn's calls as a group, counted from 1. Undefined for a call that the model's provider ran. */
      readonly batch?: number
      /** Step of the code_execution call whose code made this call. */
      readonly via?: number
    }
  | { readonly type: 'tool_output'; readonly step: number; readonly text: string }
  | {
      readonly type: 'tool_result'
      readonly step: number
      readonly output: string
      readonly duration_ms: number
      /** The id of its call. In old logs, which have none, each result follows its call. */
      readonly callId?: string
      /** Set if code made the call. The code got the whole result; `output` may be truncated. */
      readonly via?: number
      /** The file in the sandbox with the whole text, of which the model got beginning and end (long-result.ts). */
      readonly full?: FullResult
    }
  /** The tool call waits for a person's approval. */
  | {
      readonly type: 'approval_required'
      readonly step: number
      readonly name: string
      readonly args: Readonly<Record<string, unknown>>
    }
  | {
      readonly type: 'approval_decided'
      /** Step of the tool call. */
      readonly step: number
      readonly approve: boolean
      readonly reason?: string
    }
  /** `newTurn`: the text of a later turn of the model begins, with the blank line that separates it from the text before. */
  | { readonly type: 'partial_output'; readonly text: string; readonly newTurn?: true }
  /** A model call broke off and is retried. `attempt` counts from 1 in each turn. The answer continues where it stopped. */
  | { readonly type: 'model_retried'; readonly attempt: number; readonly reason: string }
  /** The model was notified that a limit is near. */
  | ({ readonly type: 'notice' } & Notice)
  /** The tools that the model may call have changed, by name. */
  | {
      readonly type: 'tools_changed'
      readonly added: readonly string[]
      readonly removed: readonly string[]
      readonly changed: readonly string[]
    }
  /** Tool results were removed from what the model gets, to make room. The trace keeps them. */
  | {
      readonly type: 'context_cleared'
      /** Steps of the results, of this interaction. */
      readonly steps: readonly number[]
      /** Estimated tokens that this freed. */
      readonly tokens: number
      /** Number of latest messages that stay unchanged. */
      readonly keep?: number
      /** The model, and its context window in tokens. */
      readonly model?: string
      readonly window?: number
      /** Only images and documents were removed, because the provider refused them. */
      readonly media?: true
    }
  /** Older messages were replaced by a summary in what the model gets. The trace keeps them. */
  | {
      readonly type: 'context_compacted'
      /** The last step that the summary covers. 0: none of this interaction. */
      readonly throughStep: number
      /** Estimated tokens of the request. */
      readonly tokensBefore: number
      readonly tokensAfter: number
      /** Number of latest messages that stay unchanged. */
      readonly keep: number
      /** The model, and its context window in tokens. */
      readonly model: string
      readonly window: number
      /** There is no summary: the older messages were removed because summarizing failed. */
      readonly dropped?: true
    }
  | { readonly type: 'stage'; readonly stage: Stage }
  | ({ readonly type: 'warning' } & Warning)
  | {
      readonly type: 'error'
      readonly interactionId: string
      readonly code: ErrorCode
      readonly message: string
      readonly status: number
      readonly retryable: boolean
    }
  | {
      readonly type: 'completed'
      readonly interactionId: string
      readonly status: TerminalStatus
      readonly usage: Usage
      readonly stopReason?: StopReason
    }

export type EventType = RunEvent['type']

/** An event as the log stores it. `data` is the event's JSON without its `type`, and is sent unchanged. */
export interface StoredEvent {
  /** Number in the interaction: 1..n without gaps. */
  readonly seq: number
  readonly type: EventType
  readonly data: string
}

/** The event's payload as stored: everything but its `type`. */
export function encodeEvent(event: RunEvent): string {
  const { type: _type, ...data } = event
  return JSON.stringify(data)
}

export function decodeEvent(stored: Pick<StoredEvent, 'type' | 'data'>): RunEvent {
  return { type: stored.type, ...JSON.parse(stored.data) } as RunEvent
}

/** Maximum length of a fragment, in UTF-16 units. A follower holds several events at a time. */
const MAX_FRAGMENT_CHARS = 65_536

/** Splits a text into fragments of at most 65,536 UTF-16 units. Never splits a character. */
export function fragmentsOf(text: string): string[] {
  const fragments: string[] = []
  for (let at = 0; at < text.length; at += fragments.at(-1)!.length) {
    const end = at + MAX_FRAGMENT_CHARS
    const splitsPair = end < text.length && text.codePointAt(end - 1)! > 0xffff
    fragments.push(text.slice(at, splitsPair ? end - 1 : end))
  }
  return fragments
}

/**
 * Joins two adjacent fragments. Returns undefined if they differ in type or step, or are too long together. Only for events
 * that have no number yet.
 */
export function coalesce(first: RunEvent, second: RunEvent): RunEvent | undefined {
  if (!('text' in first && 'text' in second)) return undefined
  const text = first.text + second.text
  if (text.length > MAX_FRAGMENT_CHARS) return undefined
  if (first.type === 'partial_output' && second.type === 'partial_output')
    return second.newTurn ? undefined : { ...first, text }
  if (first.type === 'reasoning_delta' && second.type === 'reasoning_delta' && first.step === second.step) {
    return { type: 'reasoning_delta', step: first.step, text }
  }
  if (first.type === 'tool_output' && second.type === 'tool_output' && first.step === second.step) {
    return { type: 'tool_output', step: first.step, text }
  }
  return undefined
}
