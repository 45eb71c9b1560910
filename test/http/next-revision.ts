/**
 * A later API revision, for tests: `answer` instead of `output`, `text` instead of `instruction`, camelCase usage, and
 * different events. It has no `stage` event, another name for fragments, and two events where the first revision has
 * `completed`.
 */
import type { Body, Codec, Frame } from '../../src/http/wire/codec.ts'

export function createNextRevision(first: Codec): Codec {
  return {
    ...first,
    revision: '2027-01-15',
    interactions: {
      ...first.interactions,
      decodeNew(body) {
        const { text, ...rest } = body as Record<string, unknown>
        return first.interactions.decodeNew({ ...rest, instruction: text })
      },
      encode(view, presentation) {
        const { output, usage, ...rest } = first.interactions.encode(view, presentation)
        return { ...rest, answer: output, usage: camelCase(usage as Body) }
      },
    },
    events: {
      ...first.events,
      openEncoder(form) {
        const encode = first.events.openEncoder(form)
        return (event) => (event.type === 'stage' ? [] : encode(event).flatMap(toNextFrames))
      },
    },
  }
}

function toNextFrames({ type, data }: Frame): Frame[] {
  if (type === 'partial_output') return [{ type: 'answer_delta', data }]
  if (type !== 'completed') return [{ type, data }]
  const { usage, ...rest } = JSON.parse(data)
  return [
    { type: 'usage', data: JSON.stringify(camelCase(usage)) },
    { type, data: JSON.stringify(rest) },
  ]
}

function camelCase(usage: Body): Body {
  return Object.fromEntries(
    Object.entries(usage).map(([key, value]) => [key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]),
  )
}
