/**
 * A later revision, for tests alone: another name for the answer, camelCase usage, `text` for `instruction`, another
 * event for fragments. It proves that a revision is a codec: nothing behind the edge knows of it.
 */
import type { Body, Codec } from '../../src/http/wire/codec.ts'

export function createNextRevision(first: Codec): Codec {
  return {
    ...first,
    revision: '2027-01-15',
    decodeNewInteraction(body) {
      const { text, ...rest } = body as Record<string, unknown>
      return first.decodeNewInteraction({ ...rest, instruction: text })
    },
    encodeInteraction(view, presentation) {
      const { output, usage, ...rest } = first.encodeInteraction(view, presentation)
      return { ...rest, answer: output, usage: camelCase(usage as Body) }
    },
    encodeEvent(event, form) {
      if (event.type === 'stage') return undefined
      const { type, data } = first.encodeEvent(event, form) ?? event
      if (type === 'partial_output') return { type: 'answer_delta', data }
      if (type !== 'completed') return { type, data }
      const { usage, ...rest } = JSON.parse(data)
      return { type, data: JSON.stringify({ ...rest, usage: camelCase(usage) }) }
    },
  }
}

function camelCase(usage: Body): Body {
  return Object.fromEntries(
    Object.entries(usage).map(([key, value]) => [key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]),
  )
}
