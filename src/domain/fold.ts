/**
 * Computes the state of an interaction from its events. GET, a blocking POST and the list all use it, so they always agree
 * with the stream.
 */

import type { RunError } from './errors.ts'
import type { RunEvent, StopReason, TerminalStatus, Warning } from './event.ts'
import type { FullResult } from './long-result.ts'
import { TURN_BREAK } from './message.ts'
import type { Usage } from './usage.ts'

export type TraceStep =
  | { readonly step: number; readonly type: 'reasoning'; readonly content: string }
  | {
      readonly step: number
      readonly type: 'tool_call'
      readonly name: string
      readonly args: Readonly<Record<string, unknown>>
      /** Only if the turn has several calls: the results may be in another order. */
      readonly callId?: string
      readonly via?: number
    }
  | {
      readonly step: number
      readonly type: 'tool_result'
      readonly output: string
      readonly duration_ms: number
      readonly callId?: string
      readonly via?: number
      readonly full?: FullResult
    }

/** A tool call that waits for a person's approval. */
export interface PendingApproval {
  /** Step of the tool call. */
  readonly step: number
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

export interface End {
  readonly status: TerminalStatus
  readonly usage: Usage
  readonly stopReason?: StopReason
}

/** The state after the events so far. */
export interface InteractionView {
  readonly output: string
  readonly trace: readonly TraceStep[]
  readonly warnings: readonly Warning[]
  readonly pendingApprovals: readonly PendingApproval[]
  readonly error: RunError | undefined
  readonly end: End | undefined
}

export interface InteractionFold {
  add(event: RunEvent): void
  view(): InteractionView
}

/** `shows`: the part of the answer that `output` has: all of it, or the text of the last turn that has some. */
export function createInteractionFold(shows: 'all' | 'final' = 'all'): InteractionFold {
  const trace: TraceStep[] = []
  const warnings: Warning[] = []
  let output: string[] = []
  let pending: PendingApproval[] = []
  /** The last turn with calls. `ids`: those of its calls if it has several. */
  let turn: { batch: number; ids: Set<string>; addFirst: () => void } | undefined
  // The open reasoning step's fragments, joined once when the view is read: long reasoning stays linear.
  let reasoning: { index: number; step: number; parts: string[] } | undefined
  let error: RunError | undefined
  let end: End | undefined

  function closeReasoning(): void {
    if (!reasoning) return
    trace[reasoning.index] = { step: reasoning.step, type: 'reasoning', content: reasoning.parts.join('') }
  }

  function addCall({ step, name, args, callId, batch, via }: Extract<RunEvent, { type: 'tool_call' }>): void {
    const call = { step, type: 'tool_call', name, args } as const
    if (via !== undefined) return void trace.push({ ...call, callId, via })
    const at = trace.push(call) - 1
    if (batch === undefined || callId === undefined) return
    const add = () => {
      trace[at] = { ...call, callId }
      turn?.ids.add(callId)
    }
    if (turn?.batch !== batch) turn = { batch, ids: new Set(), addFirst: add }
    else {
      turn.addFirst()
      add()
    }
  }

  return {
    add(event) {
      switch (event.type) {
        case 'reasoning_started':
          closeReasoning()
          reasoning = { index: trace.length, step: event.step, parts: [event.content] }
          trace.push({ step: event.step, type: 'reasoning', content: event.content })
          return
        case 'reasoning_delta':
          if (reasoning?.step === event.step) reasoning.parts.push(event.text)
          return
        case 'tool_call':
          addCall(event)
          return
        case 'tool_result': {
          const { callId, ...result } = event
          trace.push({
            ...result,
            ...(callId !== undefined && (event.via !== undefined || turn?.ids.has(callId)) && { callId }),
          })
          return
        }
        case 'approval_required':
          pending.push({ step: event.step, name: event.name, args: event.args })
          return
        case 'approval_decided':
          pending = pending.filter(({ step }) => step !== event.step)
          return
        case 'partial_output':
          if (shows === 'final' && event.newTurn) output = [event.text.slice(TURN_BREAK.length)]
          else output.push(event.text)
          return
        case 'warning': {
          const { type: _type, ...warning } = event
          warnings.push(warning)
          return
        }
        case 'error':
          error = { code: event.code, message: event.message, status: event.status, retryable: event.retryable }
          return
        case 'completed':
          pending = []
          end = { status: event.status, usage: event.usage, stopReason: event.stopReason }
          return
        case 'tool_output':
        case 'model_retried':
        case 'tools_changed':
        case 'notice':
        case 'context_cleared':
        case 'context_compacted':
        case 'stage':
          return
        default:
          event satisfies never
      }
    },
    view() {
      closeReasoning()
      return {
        output: output.join(''),
        trace: [...trace],
        warnings: [...warnings],
        pendingApprovals: [...pending],
        error,
        end,
      }
    },
  }
}
