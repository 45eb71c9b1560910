/** Webhooks in revision 2026-05-20's words: what is sent, and what is told of the sending. */
import { z } from 'zod'
import type { InteractionSummary } from '../../domain/interaction.ts'
import type { WebhookLog } from '../../domain/webhook.ts'
import { interaction } from './2026-05-20-answers.ts'
import type { Body } from './codec.ts'
import { rfc3339 } from './time.ts'

const { interactionId, id, status, agentId, agentVersion, model, previousInteractionId, retryOf, labels } =
  interaction.shape
const { createTime, endTime, stopReason, error } = interaction.shape

export const webhookEventSchema = z
  .object({
    type: z.enum(['interaction.completed', 'interaction.failed', 'interaction.cancelled']),
    timestamp: z.iso.datetime().meta({ description: 'When the interaction ended.' }),
    data: z
      .object({
        ...{ interactionId, id, status, agentId, agentVersion, model, previousInteractionId, retryOf, labels },
        ...{ createTime, endTime, stopReason, error },
        usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }),
      })
      .meta({
        title: 'InteractionInWebhook',
        description: 'The short interaction, without what was asked and answered.',
      }),
  })
  .meta({ title: 'WebhookEvent', description: 'What a webhook is sent.' })

export const deliveries = z
  .object({
    state: z.enum(['pending', 'delivered', 'gone', 'failed']).optional().meta({
      description:
        '`delivered` with the first 2xx, `gone` where the receiver answered 410, `failed` where it was given up after a day. Absent where the interaction has no webhook.',
    }),
    nextAttemptTime: z.iso.datetime().optional().meta({ description: 'When it is tried again, where it is.' }),
    deliveries: z.array(
      z
        .object({
          attempt: z.int().min(1),
          time: z.iso.datetime(),
          durationMs: z.int().min(0),
          status: z.int().optional().meta({ description: 'Of the receiver’s answer, where there was one.' }),
          error: z.string().optional().meta({ description: 'Why the attempt failed.' }),
        })
        .meta({ title: 'Delivery' }),
    ),
  })
  .meta({
    title: 'DeliveryList',
    description: 'The attempts to tell a webhook of the interaction’s end, oldest first.',
  })

export function encodeDeliveries(log: WebhookLog | undefined): Body {
  const { state, nextAt, deliveries: attempts = [] } = log ?? {}
  return {
    state,
    nextAttemptTime: nextAt === undefined ? undefined : rfc3339(nextAt),
    deliveries: attempts.map(({ at, ...rest }) => ({ ...rest, time: rfc3339(at) })),
  }
}

/** `summary`: the short interaction. The instruction stays here: what was asked may be long, and is nobody else's business. */
export function webhookEvent({ status, endedAt }: InteractionSummary, { instruction: _, ...summary }: Body): Body {
  return { type: `interaction.${status}`, timestamp: rfc3339(endedAt!), data: summary }
}
