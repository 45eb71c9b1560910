/** An interaction's log folded into what is shown: a list of blocks in the order in which they came, and where it is. */
import type { Usage, Warning } from '../api/types.gen.js'
import type { LogEvent } from '../server/stream.ts'

export type Verdict = 'waiting' | 'approved' | 'denied'

export interface ToolCall {
  readonly kind: 'call'
  readonly step: number
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** What it printed so far; once it is over, its result. */
  readonly output: string
  /** Milliseconds; undefined while it runs. */
  readonly durationMs?: number
  readonly done: boolean
  readonly verdict?: Verdict
  readonly reason?: string
}

export type Block =
  | { readonly kind: 'reasoning'; readonly step: number; readonly text: string }
  | ToolCall
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'warning'; readonly warning: Warning }
  | { readonly kind: 'error'; readonly code: string; readonly message: string }

export interface Trace {
  readonly blocks: readonly Block[]
  readonly events: readonly LogEvent[]
  readonly status: 'running' | 'completed' | 'failed' | 'cancelled'
  readonly stage?: string
  readonly usage?: Usage
  readonly stopReason?: string
}

export const EMPTY: Trace = { blocks: [], events: [], status: 'running' }

export function fold(trace: Trace, events: readonly LogEvent[]): Trace {
  const blocks = [...trace.blocks]
  let next: Trace = { ...trace, events: [...trace.events, ...events], blocks }
  for (const event of events) next = { ...next, ...apply(blocks, event) }
  return next
}

/** Changes the list in place, which is this fold's own; gives what else has changed. */
function apply(blocks: Block[], { type, data }: LogEvent): Partial<Trace> {
  const last = blocks.at(-1)
  const step = data.step as number
  const text = data.text as string
  switch (type) {
    case 'reasoning_started':
      blocks.push({ kind: 'reasoning', step, text: data.content as string })
      return {}
    case 'reasoning_delta':
      change(
        blocks,
        (block) => block.kind === 'reasoning' && block.step === step,
        (block) => ({ ...block, text: (block as { text: string }).text + text }) as Block,
      )
      return {}
    case 'tool_call': {
      const waiting = blocks.findIndex((block) => block.kind === 'call' && block.step === step)
      const call: ToolCall = {
        kind: 'call',
        step,
        name: data.name as string,
        args: data.args as ToolCall['args'],
        output: '',
        done: false,
      }
      if (waiting < 0) blocks.push(call)
      return {}
    }
    case 'approval_required':
      changeCall(blocks, step, { verdict: 'waiting' })
      return {}
    case 'approval_decided':
      changeCall(blocks, step, { verdict: data.approve ? 'approved' : 'denied', reason: data.reason as string })
      return {}
    case 'tool_output':
      change(blocks, running, (block) => ({ ...(block as ToolCall), output: (block as ToolCall).output + text }))
      return {}
    case 'tool_result':
      change(blocks, running, (block) => ({
        ...(block as ToolCall),
        output: data.output as string,
        durationMs: data.duration_ms as number,
        done: true,
      }))
      return {}
    case 'partial_output':
      if (last?.kind === 'answer') blocks[blocks.length - 1] = { kind: 'answer', text: last.text + text }
      else blocks.push({ kind: 'answer', text: text.replace(/^\n+/, '') })
      return {}
    case 'warning':
      blocks.push({ kind: 'warning', warning: data as unknown as Warning })
      return {}
    case 'stage':
      return { stage: data.stage as string }
    case 'error':
      blocks.push({ kind: 'error', code: data.code as string, message: data.message as string })
      return {}
    case 'completed':
      return {
        status: data.status as Trace['status'],
        stage: undefined,
        usage: data.usage as Usage,
        stopReason: data.stopReason as string,
      }
    default:
      return {}
  }
}

/** Calls of one turn run one after the other: what comes belongs to the first that is not over. */
function running(block: Block): boolean {
  return block.kind === 'call' && !block.done
}

function changeCall(blocks: Block[], step: number, changes: Partial<ToolCall>): void {
  change(
    blocks,
    (block) => block.kind === 'call' && block.step === step,
    (block) => ({ ...(block as ToolCall), ...changes }),
  )
}

function change(blocks: Block[], which: (block: Block) => boolean, how: (block: Block) => Block): void {
  const i = blocks.findIndex(which)
  if (i >= 0) blocks[i] = how(blocks[i]!)
}
