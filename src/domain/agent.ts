/** A stored agent: a configuration that callers refer to by id (docs/concepts.md). */
import { isDeepStrictEqual } from 'node:util'
import type { ContextLimits, RunLimits, SandboxLimits } from './limits.ts'
import type { McpServer } from './mcp.ts'
import { type ModelParameters, PARAMETER_NAMES, withDefaults } from './model-parameters.ts'
import type { Network } from './network.ts'

export const TOOL_NAMES = ['code_execution', 'web_search', 'file_read', 'file_write', 'browser'] as const
export type ToolName = (typeof TOOL_NAMES)[number]

export function isToolName(name: string): name is ToolName {
  return (TOOL_NAMES as readonly string[]).includes(name)
}

/** Limits that a caller or an agent sets for a run. A missing limit takes the operator's default. */
export interface Policy extends Partial<RunLimits> {
  /** US dollars over the whole run, for models with a price. */
  readonly maxCost?: number
  readonly sandbox?: Partial<SandboxLimits>
  readonly context?: Partial<ContextLimits> & {
    /** Further contents of summaries of the conversation. */
    readonly instructions?: string
  }
}

export type Labels = Readonly<Record<string, string>>

/** The configurable fields of an agent. A field that was never set, or was set to `null`, is absent. */
export interface AgentConfig extends ModelParameters {
  readonly displayName?: string
  readonly description?: string
  readonly systemInstruction?: string
  readonly model?: string
  /** Tool names as the caller sent them. Unknown names are kept: a later version of the server may have the tool. */
  readonly tools?: readonly string[]
  readonly skills?: readonly string[]
  readonly mcp?: readonly McpServer[]
  readonly network?: Network
  readonly policy?: Policy
  readonly labels?: Labels
}

/** The settings of an agent that a request may override. */
export const RUN_SETTINGS = [
  'systemInstruction',
  'model',
  'tools',
  'skills',
  'mcp',
  'network',
  'policy',
  ...PARAMETER_NAMES,
] as const satisfies readonly (keyof AgentConfig)[]

export type RunSettings = Pick<AgentConfig, (typeof RUN_SETTINGS)[number]>

/** The agent's settings with those of a request. A request replaces a whole setting; of `policy` and `reasoning`, single fields. */
export function overrideSettings(agent: RunSettings, request: RunSettings): RunSettings {
  const settings = Object.fromEntries(RUN_SETTINGS.map((name) => [name, request[name] ?? agent[name]]))
  const sandbox = { ...agent.policy?.sandbox, ...request.policy?.sandbox }
  const context = { ...agent.policy?.context, ...request.policy?.context }
  const policy = { ...agent.policy, ...request.policy, sandbox, context }
  return { ...settings, ...withDefaults(request, agent), policy }
}

export interface Agent {
  readonly id: string
  readonly config: AgentConfig
  /** From 1; rises with each real change. */
  readonly version: number
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly updatedAt: number
}

/** The entity tag of this version of the agent, with its quotes (RFC 9110, 8.8.3). */
export function agentEtag(agent: Pick<Agent, 'version' | 'createdAt'>): string {
  return `"${agent.version}-${agent.createdAt.toString(36)}"`
}

/** A change to an agent: present replaces, `null` clears, absent keeps; objects of MERGED_BY_KEY merge key by key. */
export type AgentPatch = { readonly [K in keyof AgentConfig]?: AgentConfig[K] | null }

const MERGED_BY_KEY = new Set<string>(['policy', 'labels', ...PARAMETER_NAMES])

/** JSON merge patch (RFC 7396) on a configuration. Lists, `network` among objects, and scalars are replaced whole. */
export function patchConfig(config: AgentConfig, patch: AgentPatch): AgentConfig {
  return merge({ ...config }, patch, (key) => MERGED_BY_KEY.has(key)) as AgentConfig
}

export function sameConfig(a: AgentConfig, b: AgentConfig): boolean {
  return isDeepStrictEqual(a, b)
}

type Fields = Record<string, unknown>

/** Changes `into`. Removes objects that become empty. */
function merge(into: Fields, patch: object, byKey: (key: string) => boolean): Fields {
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue
    if (value === null) delete into[key]
    else if (typeof value === 'object' && byKey(key)) {
      const merged = merge({ ...(into[key] as Fields | undefined) }, value, () => true)
      if (Object.keys(merged).length === 0) delete into[key]
      else into[key] = merged
    } else into[key] = value
  }
  return into
}
