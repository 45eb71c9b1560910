/** Webhooks in revision 2026-05-20: the body that is sent, and the list of delivery attempts. */
import { z } from 'zod'
import type { Body, WebhookCodec } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { encodeSummary, interaction } from './interaction-answers.ts'
import { shortUsage } from './usage.ts'

const { interactionId, id, status, agentId, agentVersion, model, previousInteractionId, retryOf, labels } =
  interaction.shape
const { createTime, endTime, stopReason, error } = interaction.shape

const webhookEvent = z
  .object({
    type: z.enum(['interaction.completed', 'interaction.failed', 'interaction.cancelled']),
    timestamp: z.iso.datetime().meta({ description: 'When the interaction ended.' }),
    data: z
      .object({
        ...{ interactionId, id, status, agentId, agentVersion, model, previousInteractionId, retryOf, labels },
        ...{ createTime, endTime, stopReason, error },
        usage: shortUsage,
      })
      .meta({
        title: 'InteractionInWebhook',
        description: 'The short interaction, without the instruction and the output.',
      }),
  })
  .meta({ title: 'WebhookEvent', description: 'The body of a webhook request.' })

const deliveries = z
  .object({
    state: z.enum(['pending', 'delivered', 'gone', 'failed']).optional().meta({
      description:
        '`delivered`: the receiver responded with 2xx. `gone`: it responded with 410. `failed`: no attempt succeeded within a day. Absent if the interaction has no webhook.',
    }),
    nextAttemptTime: z.iso.datetime().optional().meta({ description: 'Time of the next attempt, if there is one.' }),
    deliveries: z.array(
      z
        .object({
          attempt: z.int().min(1),
          time: z.iso.datetime(),
          durationMs: z.int().min(0),
          status: z.int().optional().meta({ description: 'HTTP status of the receiver’s response, if there was one.' }),
          error: z.string().optional().meta({ description: 'Why the attempt failed.' }),
        })
        .meta({ title: 'Delivery' }),
    ),
  })
  .meta({
    title: 'DeliveryList',
    description: 'Attempts to deliver the webhook event, oldest first.',
  })

export const webhookSchemas = { webhookEvent, deliveries }

export const webhookCodec: WebhookCodec = {
  encodeDeliveries(log) {
    const { state, nextAt, deliveries: attempts = [] } = log ?? {}
    return {
      state,
      nextAttemptTime: nextAt === undefined ? undefined : rfc3339(nextAt),
      deliveries: attempts.map(({ at, ...rest }) => ({ ...rest, time: rfc3339(at) })),
    }
  },
  encodeEvent(interaction) {
    // Without the instruction, which may be long and confidential.
    const { instruction: _, ...data } = encodeSummary(interaction, interaction.usage!, 'short')
    return { type: `interaction.${interaction.status}`, timestamp: rfc3339(interaction.endedAt!), data } satisfies Body
  },
}
