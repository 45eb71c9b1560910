/** Agents in revision 2026-05-20: request and answer schemas, decoding and encoding. */
import { z } from 'zod'
import { type Agent, agentEtag } from '../../../domain/agent.ts'
import type { Limits } from '../../../domain/limits.ts'
import { check, unknownFields } from '../../request/fields.ts'
import type { AgentCodec, Body } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { labelAnswers, labelRequests, nextPageToken, text, time, warning, withoutNulls } from './common-fields.ts'
import { refuseStoredSecrets } from './mcp-servers.ts'
import { decodeSettings, encodeSettings, settingAnswers, settingRequests } from './settings.ts'

const MAX_DISPLAY_NAME_CHARS = 512
const MAX_DESCRIPTION_CHARS = 10_000

/** Fields of an answer that a request can't set: sending them back causes a warning of its own. */
const READ_ONLY = new Set(['id', 'agentId', 'version', 'createTime', 'updateTime', 'etag', 'warnings'])

const agent = z
  .object({
    id: z.string().meta({ examples: ['agt_0Wb1xYz3kJ9mQ2pR5sT7uV'] }),
    agentId: z.string().meta({ description: 'The same as `id`. Interactions use this name.' }),
    displayName: z.string().optional(),
    description: z.string().optional(),
    ...settingAnswers,
    network: settingAnswers.network.optional(),
    labels: labelAnswers,
    version: z
      .int()
      .min(1)
      .meta({ description: 'Starts at 1 and rises with each actual change. Every version stays readable.' }),
    createTime: time(),
    updateTime: time(),
    etag: z
      .string()
      .meta({ description: 'The value of the `ETag` header, including the quotes. Send it in `If-Match`.' }),
    warnings: z.array(warning).optional().meta({ description: 'Only in answers to POST and PATCH, if there are any.' }),
  })
  .meta({ title: 'Agent', description: 'A stored agent configuration.' })

export const agentAnswerSchemas = {
  agent,
  agentList: z.object({ agents: z.array(agent), nextPageToken }).meta({ title: 'AgentList' }),
  agentVersions: z
    .object({ versions: z.array(agent), nextPageToken })
    .meta({ title: 'AgentVersions', description: 'Versions of an agent, newest first.' }),
}

export function agentRequestSchemas(limits: Limits) {
  const fields = {
    displayName: text(MAX_DISPLAY_NAME_CHARS)
      .nullish()
      .meta({ description: 'Human-readable name.', examples: ['Sales analyst'] }),
    description: text(MAX_DESCRIPTION_CHARS).nullish().meta({ description: 'Free-text description.' }),
    ...settingRequests(limits),
    labels: labelRequests(limits)
      .nullish()
      .meta({
        description: `Up to ${limits.labels} key-value pairs to find the agent by.`,
        examples: [{ team: 'sales' }],
      }),
  }
  const id = z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,62}$/, {
      error: 'must be 1 to 63 lower-case letters, digits or hyphens, the first one a letter',
    })
    .nullish()
    .meta({
      description: 'An id of your own. Absent: the server generates one. An id that exists is 409.',
      examples: ['sales-analyst'],
    })
  return {
    newAgent: z.object({ id, ...fields }).meta({
      title: 'NewAgent',
      description: 'An agent to store. All fields are optional. `null` is the same as absent.',
      examples: [
        {
          id: 'sales-analyst',
          displayName: 'Sales analyst',
          systemInstruction: 'Answer in one sentence.',
          model: 'svc-3.5-flash',
          tools: ['code_execution', 'file_read'],
          policy: { maxTurnDuration: 300 },
        },
      ],
    }),
    agentPatch: z.object(fields).meta({
      title: 'AgentPatch',
      description:
        'A merge patch (RFC 7396). Absent fields stay as they are, `null` clears a field, lists are replaced as a whole, `policy` and `labels` are merged key by key.',
      examples: [{ systemInstruction: 'Answer in two sentences.', policy: { maxTurnDuration: null } }],
    }),
  }
}

export function createAgentCodec(limits: Limits, requests: ReturnType<typeof agentRequestSchemas>): AgentCodec {
  return {
    decodeNew(body) {
      const { id, labels, ...fields } = withoutNulls(check(requests.newAgent, body))
      refuseStoredSecrets(fields.mcp)
      return {
        id,
        config: { ...decodeSettings(fields, limits), ...(labels && { labels: withoutNulls(labels) }) },
        warnings: unknownFields(requests.newAgent, body, READ_ONLY),
      }
    },
    decodePatch(body) {
      const fields = check(requests.agentPatch, body)
      refuseStoredSecrets(fields.mcp)
      return {
        patch: decodeSettings(fields, limits, true),
        warnings: unknownFields(requests.agentPatch, body, READ_ONLY),
      }
    },
    encode: (agent, warnings = []) => ({ ...encodeAgent(agent), ...(warnings.length > 0 ? { warnings } : {}) }),
    encodeList: (agents, nextPageToken) => ({ agents: agents.map(encodeAgent), nextPageToken }),
    encodeVersions: (agents, nextPageToken) => ({ versions: agents.map(encodeAgent), nextPageToken }),
  }
}

function encodeAgent(agent: Agent): Body {
  const { displayName, description, labels = {} } = agent.config
  return {
    id: agent.id,
    agentId: agent.id,
    displayName,
    description,
    ...encodeSettings(agent.config),
    labels,
    version: agent.version,
    createTime: rfc3339(agent.createdAt),
    updateTime: rfc3339(agent.updatedAt),
    etag: agentEtag(agent),
  }
}
