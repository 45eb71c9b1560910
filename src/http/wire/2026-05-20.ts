/**
 * The codec of revision 2026-05-20, the first one. The domain grew up with it, so most of it is a change of clothes:
 * times as RFC 3339, absent lists as empty ones, secrets left out. Stored events are its wire form already.
 */
import { type Agent, type AgentConfig, agentEtag, type Policy } from '../../domain/agent.ts'
import type { StoredEvent } from '../../domain/event.ts'
import type { InteractionView, TraceStep } from '../../domain/fold.ts'
import type { Interaction, InteractionSummary, StoredFile } from '../../domain/interaction.ts'
import type { Limits, SandboxLimits } from '../../domain/limits.ts'
import type { Authentication, McpServer, RequireApproval, RunMcpServer } from '../../domain/mcp.ts'
import type { Usage } from '../../domain/usage.ts'
import { check, unknownFields, wrongField } from '../request/fields.ts'
import type { FileKind } from '../response/signed-urls.ts'
import { agent, agentList, agentVersions, eventStream, interaction, interactionList } from './2026-05-20-answers.ts'
import { encodeEventList, eventList, streamEvent } from './2026-05-20-events.ts'
import { createRequestSchemas } from './2026-05-20-requests.ts'
import { approval, decodeApproval } from './approvals.ts'
import { audit, encodeAudit } from './audit.ts'
import type { Body, Codec, Form, Presentation } from './codec.ts'
import { credentialSchemas, decodeCredentialPatch, decodeNewCredential, encodeCredential } from './credentials.ts'
import { decodeFiles } from './input-files.ts'
import { decodeNetwork, type SentNetwork } from './network.ts'
import { decodeResponseFormat } from './response-format.ts'
import { type SentAuthentication, toSecret } from './secrets.ts'
import { encodeServer, server } from './server.ts'
import {
  encodeAddedSkill,
  encodePins,
  encodeSkill,
  encodeSkillList,
  encodeSkillVersions,
  skillSchemas,
} from './skills.ts'
import { rfc3339 } from './time.ts'
import { deliveries, encodeDeliveries, webhookEvent, webhookEventSchema } from './webhooks.ts'

/** What an answer has and a request can't set; sent back, it is told as such. */
const AGENT_READ_ONLY = new Set(['id', 'agentId', 'version', 'createTime', 'updateTime', 'etag', 'warnings'])
const NONE = new Set<string>()

const REVISION = '2026-05-20'

export function createRevision20260520(limits: Limits): Codec {
  const requests = createRequestSchemas(limits)
  return {
    revision: REVISION,
    schemas: {
      ...requests,
      agent,
      agentList,
      agentVersions,
      interaction,
      interactionList,
      eventStream,
      streamEvent,
      eventList,
      approval,
      audit,
      deliveries,
      webhookEvent: webhookEventSchema,
      server,
      ...credentialSchemas,
      ...skillSchemas,
    },

    decodeNewAgent(body) {
      const { id, ...fields } = withoutNulls(check(requests.newAgent, body))
      refuseStoredSecrets(fields.mcp)
      return {
        id,
        config: toSettings(fields, limits),
        warnings: unknownFields(requests.newAgent, body, AGENT_READ_ONLY),
      }
    },

    decodeAgentPatch(body) {
      const fields = check(requests.agentPatch, body)
      refuseStoredSecrets(fields.mcp)
      return {
        patch: toSettings(fields, limits, (entries) => entries),
        warnings: unknownFields(requests.agentPatch, body, AGENT_READ_ONLY),
      }
    },

    decodeNewInteraction(body) {
      const fields = withoutNulls(check(requests.newInteraction, body))
      if (fields.agentVersion !== undefined && fields.agentId === undefined) {
        throw wrongField('agentVersion', 'goes with `agentId`, which is absent')
      }
      const { systemInstruction, model, tools, skills, mcp, network, policy } = fields
      return {
        run: {
          instruction: fields.instruction,
          agentId: fields.agentId,
          agentVersion: fields.agentVersion,
          settings: toSettings({ systemInstruction, model, tools, skills, mcp, network, policy }, limits),
          labels: withoutNulls(fields.labels ?? {}),
          files: decodeFiles(fields.files ?? [], limits.inlineFilesBytes),
          responseFormat: fields.responseFormat && decodeResponseFormat(fields.responseFormat),
          previousInteractionId: fields.previousInteractionId,
          onDisconnect: fields.onDisconnect ?? 'continue',
          webhook: fields.webhook && { url: fields.webhook.url, revision: REVISION },
          warnings: unknownFields(requests.newInteraction, body, NONE),
        },
        stream: fields.stream ?? false,
        background: fields.background ?? false,
      }
    },

    encodeAgent: (agent, warnings = []) => ({ ...encodeAgent(agent), ...(warnings.length > 0 ? { warnings } : {}) }),
    encodeAgentList: (agents, nextPageToken) => ({ agents: agents.map(encodeAgent), nextPageToken }),
    encodeAgentVersions: (agents, nextPageToken) => ({ versions: agents.map(encodeAgent), nextPageToken }),
    encodeInteraction: ({ interaction, view, usage }, presentation) => ({
      ...encodeSummary(interaction, usage, presentation.form),
      ...encodeView(interaction, view, presentation),
    }),
    encodeInteractionList: (items, form, nextPageToken) => ({
      interactions: items.map((item) => encodeSummary(item.interaction, item.usage, form)),
      nextPageToken,
    }),
    encodeSkill,
    encodeAddedSkill,
    encodeSkillList,
    encodeSkillVersions,
    encodeEvent,
    encodeDeliveries,
    encodeWebhookEvent: (interaction) =>
      webhookEvent(interaction, encodeSummary(interaction, interaction.usage!, 'short')),
    encodeServer,
    decodeApproval,
    encodeAudit,
    encodeEventList,
    decodeNewCredential,
    decodeCredentialPatch,
    encodeCredential,
    encodeCredentialList: (credentials, nextPageToken) => ({
      credentials: credentials.map((credential) => encodeCredential(credential)),
      nextPageToken,
    }),
  }
}

/** The fields as the domain has them: lists of MCP servers in one form, `network` checked against what is allowed. */
function toSettings<F extends SentSettings>(
  fields: F,
  { network: ceiling }: Limits,
  policyOf: (sent: object) => object = withoutNullsBelow,
): AgentConfig {
  const settings: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) settings[key] = value
  for (const key of ['policy', 'labels']) if (settings[key]) settings[key] = policyOf(settings[key] as object)
  if (fields.mcp) {
    refuseSameNames(fields.mcp)
    settings.mcp = fields.mcp.map(toMcpServer)
  }
  if (fields.network) settings.network = decodeNetwork(fields.network, ceiling)
  return settings as AgentConfig
}

interface SentMcpServer {
  readonly name: string
  readonly url?: string | null
  readonly authentication?: SentAuthentication | null
  readonly allowedTools?: readonly string[] | null
  readonly requireApproval?: RequireApproval | null
}

type Nullable<T> = { readonly [K in keyof T]?: T[K] | null }

interface SentSettings {
  readonly mcp?: readonly SentMcpServer[] | null
  readonly network?: SentNetwork | null
  readonly policy?: Nullable<Omit<Policy, 'sandbox'> & { readonly sandbox?: Nullable<SandboxLimits> | null }> | null
}

function toMcpServer(sent: SentMcpServer, i: number): McpServer {
  const { authentication, ...server } = withoutNulls(sent)
  checkMcpUrl(server.url, `mcp[${i}].url`)
  if (authentication === undefined) return server
  return { ...server, authentication: toAuthentication(authentication, `mcp[${i}].authentication`) }
}

function toAuthentication(sent: SentMcpServer['authentication'] & {}, at: string): Authentication {
  if (typeof sent === 'string') return { type: 'bearer', token: sent }
  if (sent.type === 'none') return { type: 'none' }
  return sent.type === 'credential' ? sent : toSecret(sent.type, sent, `${at}.`)
}

/** A name stands for one server: its tools are called by it. */
function refuseSameNames(servers: readonly SentMcpServer[]): void {
  servers.forEach(({ name }, i) => {
    const first = servers.findIndex((server) => server.name === name)
    if (first !== i) throw wrongField(`mcp[${i}].name`, `is the name of mcp[${first}] too`)
  })
}

function checkMcpUrl(text: string | undefined, param: string): void {
  if (text === undefined) return
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') throw wrongField(param, 'must be an https:// address')
  if (url.username !== '' || url.password !== '') {
    throw wrongField(param, 'must not contain a user name or password; use `authentication`')
  }
}

/** A stored configuration is read by everyone in the project: it may name a credential, never hold one. */
function refuseStoredSecrets(servers: readonly SentMcpServer[] | null | undefined): void {
  servers?.forEach(({ authentication }, i) => {
    if (authentication === undefined || authentication === null) return
    const type = typeof authentication === 'string' ? 'bearer' : authentication.type
    if (type === 'none' || type === 'credential') return
    throw wrongField(
      `mcp[${i}].authentication`,
      'must not hold a secret in a stored agent; use {"type": "credential", "credentialId": …}',
    )
  })
}

function encodeAgent(agent: Agent): Body {
  const { config } = agent
  return {
    id: agent.id,
    agentId: agent.id,
    displayName: config.displayName,
    description: config.description,
    systemInstruction: config.systemInstruction,
    model: config.model,
    tools: config.tools ?? [],
    skills: config.skills ?? [],
    mcp: (config.mcp ?? []).map(withoutSecret),
    network: config.network,
    policy: config.policy ?? {},
    labels: config.labels ?? {},
    version: agent.version,
    createTime: rfc3339(agent.createdAt),
    updateTime: rfc3339(agent.updatedAt),
    etag: agentEtag(agent),
  }
}

function withoutSecret({ authentication, ...server }: McpServer | RunMcpServer): Body {
  if (authentication === undefined) return { ...server }
  const { type } = authentication
  return {
    ...server,
    authentication:
      authentication.type === 'credential' ? { type, credentialId: authentication.credentialId } : { type },
  }
}

function encodeSummary(interaction: InteractionSummary, usage: Usage, form: Form): Body {
  const { spec } = interaction
  return {
    interactionId: interaction.id,
    id: interaction.id,
    status: interaction.status,
    stage: interaction.status === 'running' ? interaction.stage : undefined,
    agentId: spec.agentId,
    agentVersion: spec.agentVersion,
    model: spec.model,
    instruction: spec.instruction,
    previousInteractionId: spec.previousInteractionId,
    retryOf: spec.retryOf,
    labels: interaction.labels,
    createTime: rfc3339(interaction.createdAt),
    endTime: interaction.endedAt === undefined ? undefined : rfc3339(interaction.endedAt),
    stopReason: interaction.stopReason,
    error: interaction.error,
    usage: form === 'short' ? shortUsage(usage) : usage,
  }
}

function encodeView(interaction: Interaction, view: InteractionView, { form, fileUrl }: Presentation): Body {
  const { systemInstruction, model, tools, skills, mcp, policy, network, responseFormat, inputFiles } = interaction.spec
  const encodeFile = (kind: FileKind) => (file: StoredFile) => {
    const { name, size, mimeType, sha256 } = file
    return { name, url: fileUrl(kind, file), size, mimeType, sha256 }
  }
  return {
    output: view.output,
    executionTrace: form === 'short' ? view.trace.map(shortStep) : view.trace,
    files: interaction.outputFiles.map(encodeFile('output')),
    warnings: view.warnings,
    pendingApprovals:
      view.pendingApprovals.length > 0
        ? view.pendingApprovals.map((call) => ({
            ...call,
            args: form === 'short' ? JSON.stringify(call.args) : call.args,
          }))
        : undefined,
    resolved: {
      ...{ systemInstruction, model, tools, ...encodePins(skills), mcp: mcp.map(withoutSecret), policy, network },
      responseFormat,
      files: inputFiles.map(encodeFile('input')),
    },
  }
}

function encodeEvent(event: StoredEvent, form: Form): Pick<StoredEvent, 'type' | 'data'> {
  if (form === 'full' || !['tool_call', 'approval_required', 'completed'].includes(event.type)) return event
  const data = JSON.parse(event.data)
  return {
    type: event.type,
    data: JSON.stringify(
      event.type !== 'completed'
        ? { ...data, args: JSON.stringify(data.args) }
        : { ...data, usage: shortUsage(data.usage) },
    ),
  }
}

function shortUsage({ input_tokens, output_tokens }: Usage): Pick<Usage, 'input_tokens' | 'output_tokens'> {
  return { input_tokens, output_tokens }
}

function shortStep(step: TraceStep): Body {
  return step.type === 'tool_call' ? { ...step, args: JSON.stringify(step.args) } : { ...step }
}

type WithoutNulls<T> = { [K in keyof T]: Exclude<T[K], null> }

/** On one level: a `null` means that the field is absent. */
function withoutNullsBelow(value: object): object {
  const below = (entry: unknown) => (typeof entry === 'object' && entry !== null ? withoutNullsBelow(entry) : entry)
  return Object.fromEntries(Object.entries(withoutNulls(value)).map(([key, entry]) => [key, below(entry)]))
}

function withoutNulls<T extends object>(value: T): WithoutNulls<T> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== null)) as WithoutNulls<T>
}
