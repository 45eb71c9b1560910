/** Revision 2026-05-20: a stream's events, for the OpenAPI document, from which clients take their types. */
import { z } from 'zod'
import { args, fullUsage, runError, stage, stopReason, warning } from './2026-05-20-answers.ts'

const step = z.int().min(1)
const interactionId = z.string()

/** By their names, in the order in which they are explained. */
const DATA = {
  reasoning_started: { step, content: z.string() },
  reasoning_delta: { step, text: z.string() },
  tool_call: { step, name: z.string(), args },
  tool_output: { step, text: z.string() },
  tool_result: { step, output: z.string(), duration_ms: z.int().min(0) },
  approval_required: { step, name: z.string(), args },
  approval_decided: { step, approve: z.boolean(), reason: z.string().optional() },
  partial_output: { text: z.string() },
  stage: { stage },
  warning: warning.shape,
  error: { interactionId, ...runError.shape },
  completed: {
    interactionId,
    status: z.enum(['completed', 'failed', 'cancelled']),
    usage: fullUsage,
    stopReason: stopReason.optional(),
  },
} satisfies Record<string, z.ZodRawShape>

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
