/** Revision 2026-05-20: a stream's events, for the OpenAPI document, from which clients take their types. */
import { z } from 'zod'
import type { EventType } from '../../domain/event.ts'
import type { TimedEvent } from '../../store/events.ts'
import { args, fullUsage, runError, stage, stopReason, warning } from './2026-05-20-answers.ts'
import type { Body } from './codec.ts'
import { rfc3339 } from './time.ts'

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
      id: z.int().min(1).meta({ description: 'Its number in the interaction’s log.' }),
      event: z.literal(name),
      data: z.object(data),
    })
    .meta({ title: `${name.replaceAll(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())}Event` })
}

const schemas = Object.entries<z.ZodRawShape>(DATA).map(eventSchema)

/** An event with its three lines as three fields. There may be others in time: who does not know a name passes it over. */
export const streamEvent = z.union(schemas).meta({
  title: 'StreamEvent',
  description: 'One of the events of a stream, its lines as fields. Ignore those with names that you don’t know.',
})

export const eventList = z
  .object({
    events: z.array(
      z
        .object({
          id: z.int().min(1),
          event: z.string(),
          time: z.iso.datetime().meta({ description: 'When it was stored.' }),
          data: z.looseObject({}).meta({ description: 'As the stream has it.' }),
        })
        .meta({ title: 'TimedEvent', description: 'An event of a stream, with its time.' }),
    ),
    nextPageToken: z.string().optional().meta({ description: 'For the next page; absent on the last one.' }),
  })
  .meta({ title: 'EventList' })

export function encodeEventList(events: readonly TimedEvent[], nextPageToken: string | undefined): Body {
  return {
    events: events.map(({ seq, type, data, at }) => ({
      id: seq,
      event: type,
      time: rfc3339(at),
      data: JSON.parse(data),
    })),
    nextPageToken,
  }
}
