/** Folds an interaction's events into the blocks of the trace view, its status and usage. */
import type { FullResult, StreamEvent, Usage } from '../api/types.gen.js'
import type { LogEvent } from '../server/stream.ts'

export type Decision = 'waiting' | 'approved' | 'denied'

export interface ToolCall {
  readonly kind: 'call'
  readonly step: number
  /** Undefined in old logs. */
  readonly callId?: string | undefined
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** The output so far, or the result after the end. */
  readonly output: string
  /** The file in the sandbox with the whole of a long result. */
  readonly full?: FullResult
  /** Milliseconds. Undefined while the call runs. */
  readonly durationMs?: number
  readonly done: boolean
  readonly decision?: Decision
  readonly reason?: string
}

export type Block =
  | { readonly kind: 'reasoning'; readonly step: number; readonly text: string }
  | ToolCall
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'note'; readonly tone?: 'red'; readonly title: string; readonly text: string }

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

type EventName = StreamEvent['event']
type EventData<Name extends EventName> = Extract<StreamEvent, { event: Name }>['data']

/** Handlers by event name. Each changes `blocks` in place and returns the other fields of the trace that it changes. */
const HANDLERS: {
  readonly [Name in EventName]: (blocks: Block[], data: EventData<Name>) => Partial<Trace> | undefined
} = {
  reasoning_started(blocks, { step, content }) {
    blocks.push({ kind: 'reasoning', step, text: content })
    return undefined
  },
  reasoning_delta(blocks, { step, text }) {
    change(
      blocks,
      (block) => block.kind === 'reasoning' && block.step === step,
      (block) => ({ ...block, text: (block as { text: string }).text + text }) as Block,
    )
    return undefined
  },
  tool_call(blocks, { step, name, args, callId }) {
    const known = blocks.some((block) => block.kind === 'call' && block.step === step)
    // Only the short form, which the console does not ask for, has the arguments as text.
    const call = { kind: 'call', step, callId, name, args: args as ToolCall['args'], output: '', done: false } as const
    if (!known) blocks.push(call)
    return undefined
  },
  approval_required(blocks, { step }) {
    changeCall(blocks, step, { decision: 'waiting' })
    return undefined
  },
  approval_decided(blocks, { step, approve, reason }) {
    changeCall(blocks, step, { decision: approve ? 'approved' : 'denied', reason })
    return undefined
  },
  tool_output(blocks, { step, text }) {
    const isCall = (block: Block) => block.kind === 'call' && block.step === step
    change(blocks, isCall, (block) => ({ ...(block as ToolCall), output: (block as ToolCall).output + text }))
    return undefined
  },
  tool_result(blocks, { callId, output, duration_ms: durationMs, full }) {
    change(blocks, isOpen(callId), (block) => ({ ...(block as ToolCall), output, durationMs, full, done: true }))
    return undefined
  },
  partial_output(blocks, { text }) {
    const last = blocks.at(-1)
    if (last?.kind === 'answer') blocks[blocks.length - 1] = { kind: 'answer', text: last.text + text }
    else blocks.push({ kind: 'answer', text: text.replace(/^\n+/, '') })
    return undefined
  },
  model_retried: () => undefined,
  notice(blocks, { kind, left }) {
    const units = { time: ' s', tokens: ' output tokens', cost: ' USD', calls: ' model calls' }
    blocks.push({ kind: 'note', title: 'Limit near', text: `The model was notified: ${left}${units[kind]} left.` })
    return undefined
  },
  tools_changed(blocks, { added, removed, changed }) {
    const parts = Object.entries({ added, removed, changed }).filter(([, names]) => names.length > 0)
    const text = parts.map(([what, names]) => `${what}: ${names.join(', ')}`).join('; ')
    blocks.push({ kind: 'note', title: 'Tools changed', text })
    return undefined
  },
  context_cleared(blocks, { steps, tokens, media }) {
    const what = media ? 'Images and documents that the provider refused' : `${steps.length} older tool results`
    blocks.push({
      kind: 'note',
      title: 'context_cleared',
      text: `${what} were removed from what the model gets (about ${tokens} tokens). They stay here.`,
    })
    return undefined
  },
  context_compacted(blocks, { tokensBefore, tokensAfter, dropped }) {
    const text = dropped ? 'The older messages were removed from' : 'A summary replaced the older messages in'
    blocks.push({
      kind: 'note',
      title: 'context_compacted',
      text: `${text} what the model gets (about ${tokensBefore} to ${tokensAfter} tokens). They stay here.`,
    })
    return undefined
  },
  stage: (_blocks, { stage }) => ({ stage }),
  warning(blocks, { code, message }) {
    blocks.push({ kind: 'note', title: code, text: message })
    return undefined
  },
  error(blocks, { code, message }) {
    blocks.push({ kind: 'note', tone: 'red', title: code, text: message })
    return undefined
  },
  completed: (_blocks, { status, usage, stopReason }) => ({ status, stage: undefined, usage, stopReason }),
}

/** Ignores events that this version of the console does not know. */
function apply(blocks: Block[], { type, data }: LogEvent): Partial<Trace> | undefined {
  if (!Object.hasOwn(HANDLERS, type)) return undefined
  const handle = HANDLERS[type as EventName] as (blocks: Block[], data: unknown) => Partial<Trace> | undefined
  return handle(blocks, data)
}

/** Matches the call of a result: calls of one reply may run at the same time. Without ids, calls end in order. */
function isOpen(callId: string | undefined): (block: Block) => boolean {
  return (block) => block.kind === 'call' && !block.done && (callId === undefined || block.callId === callId)
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
