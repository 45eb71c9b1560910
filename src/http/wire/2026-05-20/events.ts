/** Events in revision 2026-05-20: schemas, from which the clients' types are generated, and encoding. */
import { z } from 'zod'
import type { EventType, StoredEvent } from '../../../domain/event.ts'
import type { TimedEvent } from '../../../store/events.ts'
import type { Body, EventCodec, Form, Frame } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { nextPageToken, warning } from './common-fields.ts'
import { args, encodeArgs, runError, stage, stopReason } from './interaction-answers.ts'
import { encodeUsage, fullUsage } from './usage.ts'

const step = z.int().min(1)
const interactionId = z.string()

/** The fields of each event, in the order of the API reference. */
const DATA = {
  reasoning_started: { step, content: z.string() },
  reasoning_delta: { step, text: z.string() },
  tool_call: { step, name: z.string(), args },
  tool_output: { step, text: z.string() },
  tool_result: { step, output: z.string(), duration_ms: z.int().min(0) },
  approval_required: { step, name: z.string(), args },
  approval_decided: { step, approve: z.boolean(), reason: z.string().optional() },
  partial_output: { text: z.string() },
  model_retried: { attempt: z.int().min(1), reason: z.string() },
  stage: { stage },
  warning: warning.shape,
  error: { interactionId, ...runError.shape },
  completed: {
    interactionId,
    status: z.enum(['completed', 'failed', 'cancelled']),
    usage: fullUsage,
    stopReason: stopReason.optional(),
  },
} satisfies Record<EventType, z.ZodRawShape>

function eventSchema([name, data]: [string, z.ZodRawShape]) {
  return z
    .object({
      id: z.int().min(1).meta({ description: 'Number of the event in the interaction’s log.' }),
      event: z.literal(name),
      data: z.object(data),
    })
    .meta({ title: `${name.replaceAll(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())}Event` })
}

const schemas = Object.entries<z.ZodRawShape>(DATA).map(eventSchema)

const streamEvent = z.union(schemas).meta({
  title: 'StreamEvent',
  description:
    'An event of a stream, with its lines as fields. Ignore events whose name you don’t know: later versions add some.',
})

const eventList = z
  .object({
    events: z.array(
      z
        .object({
          id: z.int().min(1),
          event: z.string(),
          time: z.iso.datetime().meta({ description: 'When the event was stored.' }),
          data: z.looseObject({}).meta({ description: 'The same as in the stream.' }),
        })
        .meta({ title: 'TimedEvent', description: 'An event with the time at which it was stored.' }),
    ),
    nextPageToken,
  })
  .meta({ title: 'EventList' })

export const eventSchemas = { streamEvent, eventList }

export const eventCodec: EventCodec = {
  openEncoder: (form) => (event) => [encodeEvent(event, form)],
  encodeList: (events, nextPageToken) => ({ events: events.map(encodeTimedEvent), nextPageToken }),
}

/** Returns a stored event as it is, except that the short form changes `args` and `usage`. */
function encodeEvent(event: StoredEvent, form: Form): Frame {
  if (form === 'full' || !['tool_call', 'approval_required', 'completed'].includes(event.type)) return event
  const data = JSON.parse(event.data)
  const changed =
    event.type === 'completed' ? { usage: encodeUsage(data.usage, form) } : { args: encodeArgs(data.args, form) }
  return { type: event.type, data: JSON.stringify({ ...data, ...changed }) }
}

function encodeTimedEvent({ seq, type, data, at }: TimedEvent): Body {
  return { id: seq, event: type, time: rfc3339(at), data: JSON.parse(data) }
}
