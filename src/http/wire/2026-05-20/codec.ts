/**
 * The codec of API revision 2026-05-20, the first one. Stored events already have this revision's form; most other
 * encoding turns times into RFC 3339, absent lists into empty ones, and leaves out secrets.
 */
import type { Limits } from '../../../domain/limits.ts'
import type { Codec } from '../codec.ts'
import { agentAnswerSchemas, agentRequestSchemas, createAgentCodec } from './agents.ts'
import { approval, decodeApproval } from './approvals.ts'
import { audit, encodeAudit } from './audit.ts'
import { credentialCodec, credentialSchemas } from './credentials.ts'
import { eventCodec, eventSchemas } from './events.ts'
import { interactionAnswerSchemas, interactionEncoders } from './interaction-answers.ts'
import { decodeNewInteraction, newInteractionSchema } from './interaction-request.ts'
import { encodeServer, server } from './server.ts'
import { skillCodec, skillSchemas } from './skills.ts'
import { webhookCodec, webhookSchemas } from './webhooks.ts'

const REVISION = '2026-05-20'

export function createRevision20260520(limits: Limits): Codec {
  const agentRequests = agentRequestSchemas(limits)
  const newInteraction = newInteractionSchema(limits)
  return {
    revision: REVISION,
    schemas: {
      ...agentRequests,
      ...agentAnswerSchemas,
      newInteraction,
      ...interactionAnswerSchemas,
      ...eventSchemas,
      approval,
      audit,
      ...credentialSchemas,
      ...skillSchemas,
      ...webhookSchemas,
      server,
    },
    agents: createAgentCodec(limits, agentRequests),
    interactions: {
      ...interactionEncoders,
      decodeNew: (body) => decodeNewInteraction(body, { schema: newInteraction, limits, revision: REVISION }),
    },
    events: eventCodec,
    approvals: { decode: decodeApproval },
    audit: { encodeList: encodeAudit },
    credentials: credentialCodec,
    skills: skillCodec,
    webhooks: webhookCodec,
    server: { encode: encodeServer },
  }
}
