/**
 * OpenRouter's `reasoning_details`: reasoning in the form of the model's own provider, with its signatures and encrypted
 * parts. They are streamed in pieces and sent back whole, and only to the model that wrote them.
 */
import type { AssistantPart } from '../domain/message.ts'
import { isJsonObject, type JsonObject, objectIn } from './json.ts'

/** Key of the details in a part's `provider` metadata. */
const KEY = 'openrouter'

export interface ReasoningDetails {
  /** Adds the details of a streamed fragment. */
  take(fragment: unknown): void
  /** Returns the content with the details as metadata of its first part. */
  attachTo(content: readonly AssistantPart[]): readonly AssistantPart[]
}

export function collectReasoningDetails(model: string): ReasoningDetails {
  const details: JsonObject[] = []
  return {
    take(fragment) {
      if (!Array.isArray(fragment)) return
      for (const piece of fragment.filter(isJsonObject)) add(details, piece)
    },
    attachTo([first, ...rest]) {
      if (!first) return []
      if (details.length === 0 || first.type === 'provider_tool') return [first, ...rest]
      return [{ ...first, provider: { [KEY]: { model, details } } }, ...rest]
    },
  }
}

/** Details that this model wrote. Undefined if there are none. */
export function reasoningDetailsOf(content: readonly AssistantPart[], model: string): unknown[] | undefined {
  const [first] = content
  if (!first || first.type === 'provider_tool' || !isJsonObject(first.provider)) return undefined
  const own = objectIn(first.provider, KEY)
  return own.model === model && Array.isArray(own.details) ? own.details : undefined
}

/** Pieces of one text or summary are joined. A signature comes with the last piece. */
function add(details: JsonObject[], piece: JsonObject): void {
  const last = details.at(-1)
  const joins = last && last.type === piece.type && last.index === piece.index && piece.type !== 'reasoning.encrypted'
  if (!joins) {
    details.push({ ...piece })
    return
  }
  for (const [name, value] of Object.entries(piece)) {
    const grows = (name === 'text' || name === 'summary') && typeof value === 'string'
    if (grows) last[name] = `${typeof last[name] === 'string' ? last[name] : ''}${value}`
    else if (value !== null && value !== undefined) last[name] = value
  }
}
