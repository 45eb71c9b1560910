/** Events in revision 2026-05-20: schemas, from which the clients' types are generated, and encoding. */
import { z } from 'zod'
import type { EventType, StoredEvent } from '../../../domain/event.ts'
import type { TimedEvent } from '../../../store/events.ts'
import type { Body, EventCodec, Form, Frame } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { nextPageToken, warning } from './common-fields.ts'
import { args, callId, encodeArgs, fullResult, runError, stage, stopReason, via } from './interaction-answers.ts'
import { encodeUsage, fullUsage } from './usage.ts'

const step = z.int().min(1)
const interactionId = z.string()
const toolNames = z.array(z.string())

/** The fields of each event, in the order of the API reference. */
const EVENT_TABLE = {
  reasoning_started: ['A reasoning step begins, with its first text.', { step, content: z.string() }],
  reasoning_delta: ['More text of that step. The trace has the whole text.', { step, text: z.string() }],
  tool_call: [
    'The agent calls a tool. `args.code` is what code_execution runs. The calls of one reply have the same `batch` and may run at the same time.',
    { step, name: z.string(), args, callId: callId.optional(), batch: z.int().min(1).optional(), via: via.optional() },
  ],
  tool_output: ['Output of the call at that step, while it runs.', { step, text: z.string() }],
  tool_result: [
    'The latest call with that `callId` has returned. Results may come in another order than their calls.',
    {
      step,
      output: z.string(),
      duration_ms: z.int().min(0),
      callId: callId.optional(),
      via: via.optional(),
      full: fullResult.optional(),
    },
  ],
  approval_required: [
    'The call at that step waits for approval. Decide with `:approve`. The calls of one reply are requested together.',
    { step, name: z.string(), args },
  ],
  approval_decided: [
    'Someone has decided on the call at that step. The run continues when no other call waits.',
    { step, approve: z.boolean(), reason: z.string().optional() },
  ],
  partial_output: [
    'A fragment of the answer. All fragments joined are exactly `output`. With `newTurn`, the text of a later turn of the model begins, after a blank line: the last such fragment and those after it are the final text.',
    { text: z.string(), newTurn: z.literal(true).optional() },
  ],
  model_retried: [
    'A model call failed midway and is retried. The answer continues where it stopped; no text is sent twice.',
    { attempt: z.int().min(1), reason: z.string() },
  ],
  notice: [
    'The model was notified that a limit of the run is near. `left` is in seconds, output tokens, US dollars or model calls.',
    { kind: z.enum(['time', 'tokens', 'cost', 'calls']), left: z.number().min(0) },
  ],
  tools_changed: [
    'The tools that the model may call have changed, because an MCP server changed its list. Names of tools.',
    { added: toolNames, removed: toolNames, changed: toolNames },
  ],
  context_cleared: [
    'Older tool results were removed from what the model gets, to make room. The trace keeps them.',
    {
      steps: z.array(step).meta({ description: 'Steps of the results that the model no longer gets.' }),
      tokens: z.int().min(0).meta({ description: 'Estimated tokens that this freed.' }),
      keep: z.int().min(0).optional().meta({ description: 'Number of latest messages that stay unchanged.' }),
      model: z.string().optional(),
      window: z.int().min(1).optional().meta({ description: 'Context window of the model, in tokens.' }),
      media: z
        .literal(true)
        .optional()
        .meta({ description: 'Only images and documents were removed: the model’s provider refused them.' }),
    },
  ],
  context_compacted: [
    'Older messages were replaced by a summary in what the model gets. The trace keeps them.',
    {
      throughStep: z.int().min(0).meta({ description: 'The last step that the summary covers.' }),
      tokensBefore: z.int().min(0).meta({ description: 'Estimated tokens of the request before.' }),
      tokensAfter: z.int().min(0).meta({ description: 'Estimated tokens of the request after.' }),
      keep: z.int().min(0).meta({ description: 'Number of latest messages that stay unchanged.' }),
      model: z.string(),
      window: z.int().min(1).meta({ description: 'Context window of the model, in tokens.' }),
      dropped: z
        .literal(true)
        .optional()
        .meta({ description: 'There is no summary, because writing one failed. The older messages were removed.' }),
    },
  ],
  stage: ['queued, provisioning, working, requires_action, settling.', { stage }],
  warning: ['Something in the request was ignored.', warning.shape],
  error: ['The run has failed; `completed` with `status: "failed"` follows.', { interactionId, ...runError.shape }],
  completed: [
    'The run has ended: completed, failed or cancelled.',
    {
      interactionId,
      status: z.enum(['completed', 'failed', 'cancelled']),
      usage: fullUsage,
      stopReason: stopReason.optional(),
    },
  ],
} satisfies Record<EventType, readonly [when: string, data: z.ZodRawShape]>

function eventSchema([name, [, data]]: Described) {
  return z
    .object({
      id: z.int().min(1).meta({ description: 'Number of the event in the interaction’s log.' }),
      event: z.literal(name),
      data: z.object(data),
    })
    .meta({ title: `${name.replaceAll(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())}Event` })
}

type Described = [name: string, described: readonly [when: string, data: z.ZodRawShape]]
const DESCRIBED: readonly Described[] = Object.entries(EVENT_TABLE)
const schemas = DESCRIBED.map(eventSchema)

/** For the API reference. */
export const EVENTS = DESCRIBED.map(([name, [when, data]]) => {
  const fields = Object.entries(data).map(([field, schema]) =>
    z.safeParse(schema, undefined).success ? `${field}?` : field,
  )
  return { name, data: `{${fields.join(', ')}}`, when }
})

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
