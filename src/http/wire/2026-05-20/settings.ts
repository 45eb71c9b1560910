/**
 * The settings that an agent stores and an interaction can override: request schema, answer schema, decoding and encoding.
 * Agents and interactions both spread these. A new setting does not compile until each of the four has it.
 */
import { z } from 'zod'
import { parameterSchemas } from '../../../config/parameter-schemas.ts'
import { type AgentConfig, RUN_SETTINGS, TOOL_NAMES } from '../../../domain/agent.ts'
import type { RunRequest, RunSpec } from '../../../domain/interaction.ts'
import type { Limits } from '../../../domain/limits.ts'
import { type ModelParameters, PARAMETER_NAMES } from '../../../domain/model-parameters.ts'
import { MAX_NAME_CHARS, text } from './common-fields.ts'
import { decodeMcpServers, encodeMcpServer, mcpServerAnswer, mcpServerRequest } from './mcp-servers.ts'
import { decodeNetwork, networkAnswer, networkRequest } from './network.ts'
import { policyAnswer, policyRequest, withoutNullsBelow } from './policy.ts'

type SettingName = keyof RunRequest['settings']

/** Request schemas by setting. All accept `null`: absent in a new resource, cleared in a patch. */
export function settingRequests(limits: Limits) {
  return {
    systemInstruction: text(limits.systemInstructionChars)
      .nullish()
      .meta({ description: 'System instruction of the agent.', examples: ['Answer in one sentence.'] }),
    model: text(MAX_NAME_CHARS)
      .min(1)
      .nullish()
      .meta({
        description: 'The name of one of this server’s models. An unknown name is 400, and the error lists the models.',
        examples: ['svc-3.5-flash', 'svc-3.1-pro'],
      }),
    tools: z
      .array(text(MAX_NAME_CHARS))
      .max(limits.tools)
      .nullish()
      .meta({
        description: `Tools to enable: ${TOOL_NAMES.map((name) => `\`${name}\``).join(', ')}. Unknown names are ignored and reported in \`warnings\`.`,
        examples: [['code_execution', 'file_read']],
      }),
    skills: z
      .array(text(MAX_NAME_CHARS).min(1))
      .max(limits.skills)
      .nullish()
      .meta({
        description:
          'Skills to enable: `pdf` for the newest version, or `pdf@3`. Unknown skills are ignored and reported in `warnings`.',
        examples: [['pdf', 'house-style@3']],
      }),
    mcp: z.array(mcpServerRequest).max(limits.mcp).nullish().meta({
      description:
        'MCP servers whose tools the agent may use, as `server__tool`. A server that can’t be used is reported in `warnings`, and the run continues without it.',
    }),
    network: networkRequest(limits.network).nullish(),
    policy: policyRequest(limits)
      .nullish()
      .meta({ description: 'Limits of a run: duration, output tokens, cost, sandbox resources.' }),
    ...parameterSchemas<null | undefined>({ optional: (schema) => schema.nullish() }),
  } satisfies Record<SettingName, z.ZodType>
}

export type SentSettings = Partial<z.output<z.ZodObject<ReturnType<typeof settingRequests>>>>

/** Answer schemas by setting. */
export const settingAnswers = {
  systemInstruction: z.string().optional(),
  model: z.string().meta({ examples: ['svc-3.5-flash'] }),
  tools: z.array(z.string()),
  skills: z.array(z.string()),
  mcp: z.array(mcpServerAnswer),
  network: networkAnswer,
  policy: policyAnswer,
  ...parameterSchemas<undefined>({ optional: (schema) => schema.optional(), titleSuffix: 'Answer' }),
} satisfies Record<SettingName, z.ZodType>

/** The settings among the fields of a request. */
export function settingsIn(fields: SentSettings): SentSettings {
  return Object.fromEntries(RUN_SETTINGS.map((name) => [name, fields[name]])) as SentSettings
}

/**
 * Settings as the domain stores them; other fields are copied. With `keepNulls`, `null` stays in objects: a patch clears with
 * it. Throws ErrandError `invalid_request`.
 */
export function decodeSettings(sent: SentSettings, { network: ceiling }: Limits, keepNulls = false): AgentConfig {
  const { mcp, network, policy } = sent
  const decoded = {
    ...sent,
    mcp: mcp && decodeMcpServers(mcp),
    network: network && decodeNetwork(network, ceiling),
    policy: policy && (keepNulls ? policy : withoutNullsBelow(policy)),
    ...(!keepNulls && decodeParameters(sent)),
  }
  return Object.fromEntries(Object.entries(decoded).filter(([, value]) => value !== undefined)) as AgentConfig
}

/** The model parameters without `null`. An object without fields is absent. */
function decodeParameters(sent: SentSettings): ModelParameters {
  const set = PARAMETER_NAMES.map((name) => {
    const value = sent[name]
    const decoded = typeof value === 'object' && value !== null ? withoutNullsBelow(value) : value
    return [name, isEmpty(decoded) ? undefined : decoded]
  })
  return Object.fromEntries(set)
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0)
}

/** Settings as answers show them: missing lists as empty ones, and no secrets. */
export function encodeSettings(settings: Pick<AgentConfig, SettingName> | Pick<RunSpec, SettingName>) {
  const { systemInstruction, model, tools = [], skills = [], mcp = [], network, policy = {} } = settings
  const parameters = Object.fromEntries(
    PARAMETER_NAMES.map((name) => [name, settings[name]]),
  ) as Required<ModelParameters>
  return {
    ...{ systemInstruction, model, tools, skills, mcp: mcp.map(encodeMcpServer), network, policy },
    ...parameters,
  } satisfies Record<SettingName, unknown>
}
