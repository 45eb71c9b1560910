/**
 * Builds the assistant's message from streamed fragments and reports deltas. All clients share it, and its rules: a fragment
 * of another kind begins a new part. A reasoning block after the first is announced with its first text, so that empty
 * blocks are no steps. A tool call's arguments are parsed when the call is complete.
 */
import { randomUUID } from 'node:crypto'
import type { AssistantPart } from '../domain/message.ts'
import { isShallow } from '../domain/shallow.ts'
import { isJsonObject } from './json.ts'
import type { ModelDelta } from './port.ts'

/** Maximum nesting of a call's arguments. No tool needs as much. */
const MAX_ARGS_DEPTH = 100

type ProviderTool = Extract<AssistantPart, { type: 'provider_tool' }>
type GrowingText = { type: 'text' | 'reasoning'; text: string; provider?: unknown }

export interface GrowingCall {
  id: string
  name: string
  argsText: string
  provider?: unknown
}

export interface GrowingAnswer {
  /** Begins a part even if the previous one is of the same kind: for providers with numbered blocks. */
  begin(kind: 'text' | 'reasoning', provider?: unknown): void
  text(fragment: string): void
  reasoning(fragment: string): void
  /** Replaces the provider's metadata of the newest part of that kind. */
  keep(kind: 'text' | 'reasoning', provider: unknown): void
  /** Adds a call. Its fields may be set until `content` is read. */
  call(): GrowingCall
  /** Adds a call of a tool that the provider ran, or its result, to be sent back later. */
  providerTool(part: ProviderTool): void
  /** Number of characters so far, arguments included. */
  size(): number
  hasCalls(): boolean
  content(): readonly AssistantPart[]
}

export function growAnswer(onDelta: (delta: ModelDelta) => void): GrowingAnswer {
  const parts: (GrowingText | ProviderTool | { type: 'call'; call: GrowingCall })[] = []
  let open: GrowingText | undefined
  let shownReasoning: GrowingText | undefined
  let characters = 0

  function begin(kind: 'text' | 'reasoning', provider?: unknown): void {
    open = { type: kind, text: '', provider }
    parts.push(open)
  }

  function grow(kind: 'text' | 'reasoning', fragment: string): void {
    if (fragment === '') return
    if (open?.type !== kind) begin(kind)
    const part = open as GrowingText
    if (kind === 'reasoning' && shownReasoning !== part) {
      if (shownReasoning) onDelta({ type: 'reasoning_block' })
      shownReasoning = part
    }
    part.text += fragment
    characters += fragment.length
    onDelta({ type: kind, text: fragment })
  }

  return {
    begin,
    text: (fragment) => grow('text', fragment),
    reasoning: (fragment) => grow('reasoning', fragment),
    keep: (kind, provider) => {
      const part = parts.findLast((candidate) => candidate.type === kind) as GrowingText | undefined
      if (part) part.provider = provider
    },
    call: () => {
      const call: GrowingCall = { id: '', name: '', argsText: '' }
      open = undefined
      parts.push({ type: 'call', call })
      return call
    },
    providerTool: (part) => {
      open = undefined
      parts.push(part)
    },
    size: () => parts.reduce((sum, part) => (part.type === 'call' ? sum + part.call.argsText.length : sum), characters),
    hasCalls: () => parts.some((part) => part.type === 'call'),
    content: () =>
      parts.flatMap((part): AssistantPart[] => {
        if (part.type === 'call') return [finishCall(part.call)]
        if (part.type === 'provider_tool') return [part]
        return part.text === '' && part.provider === undefined ? [] : [part as AssistantPart]
      }),
  }
}

function finishCall({ id, name, argsText, provider }: GrowingCall): AssistantPart {
  return {
    type: 'tool_call',
    callId: id || `call_${randomUUID().replaceAll('-', '')}`,
    name,
    argsText,
    args: argsText.trim() === '' ? {} : parseObject(argsText),
    provider,
  }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) && isShallow(value, MAX_ARGS_DEPTH) ? value : undefined
  } catch {
    return undefined
  }
}
