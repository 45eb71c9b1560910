/** Resolves the settings of an agent and a request into the spec of a run. Unavailable settings become warnings. */
import { type Agent, isToolName, type Policy, type RunSettings, type ToolName } from './agent.ts'
import { missingTools, preApproved } from './allowed-tools.ts'
import type { Warning } from './event.ts'
import type { RunRequest, RunSpec } from './interaction.ts'
import { type Limits, type Range, RUN_LIMITS, type RunLimits, type SandboxLimits } from './limits.ts'
import type { McpServer, ResolvedMcpServer } from './mcp.ts'
import { beyondCeiling, type Network, withinCeiling } from './network.ts'
import { parseSkillRef, type SkillOffer, skillRef } from './skill.ts'

export interface Resolution {
  readonly spec: Omit<RunSpec, 'mcp' | 'inputFiles'>
  /** The MCP servers, with unsealed secrets. */
  readonly mcp: readonly ResolvedMcpServer[]
  readonly warnings: readonly Warning[]
}

/** The capabilities of this server that resolving depends on. */
export interface Offer {
  readonly defaultModel: string
  readonly limits: Limits
  /** Tools that this server can run now. Others cause a warning. */
  readonly tools: ReadonlySet<ToolName>
  /** MCP servers that the operator registered. */
  readonly mcpServers: ReadonlySet<string>
  /** The skills that the settings name and that exist, by the name in the settings. */
  readonly skills: ReadonlyMap<string, SkillOffer>
}

/** `settings`: those of the agent and the request together (`overrideSettings`). */
export function resolve(
  request: Pick<RunRequest, 'instruction' | 'responseFormat' | 'output' | 'previousInteractionId' | 'onDisconnect'>,
  settings: RunSettings,
  agent: Pick<Agent, 'id' | 'version'> | undefined,
  offer: Offer,
): Resolution {
  const { tools: askedTools, mcp, skills: askedSkills, network, policy, ...plain } = settings
  const warnings: Warning[] = []
  const tools = resolveTools(askedTools ?? [], offer, warnings)
  const servers = resolveMcp(mcp ?? [], offer, warnings)
  const skills = resolveSkills(askedSkills ?? [], tools, servers, offer, warnings)
  const allowed = skills.flatMap(({ allowedTools }) => allowedTools)
  return {
    spec: {
      ...plain,
      instruction: request.instruction,
      agentId: agent?.id,
      agentVersion: agent?.version,
      model: plain.model ?? offer.defaultModel,
      tools,
      skills: skills.map(({ allowedTools: _, ...pin }) => pin),
      ...resolveNetwork(network, offer.limits, warnings),
      policy: resolvePolicy(policy, offer.limits, warnings),
      responseFormat: request.responseFormat,
      output: request.output,
      previousInteractionId: request.previousInteractionId,
      onDisconnect: request.onDisconnect,
    },
    mcp: servers.map((server) =>
      server.requireApproval === 'unless_skill'
        ? { ...server, preApproved: preApproved(allowed, server.name) }
        : server,
    ),
    warnings,
  }
}

/** A stored agent may ask for more than the operator allows now: then it gets what is allowed, with a warning. */
function resolveNetwork(
  asked: Network | undefined,
  { network: ceiling }: Limits,
  warnings: Warning[],
): Pick<RunSpec, 'network' | 'browserNetwork'> {
  // A browser without a network is useless. By default it may reach the public internet.
  if (asked === undefined) return { network: 'disabled', browserNetwork: withinCeiling('public', ceiling) }
  const beyond = beyondCeiling(asked, ceiling)
  if (beyond === undefined) return { network: asked }
  const message = `The agent’s network ${beyond}; the run goes on with what is allowed.`
  warnings.push({ code: 'network_out_of_range', param: 'network', message })
  return { network: withinCeiling(asked, ceiling) }
}

/** A stored agent may ask for more than the operator allows now: then it gets the allowed limit, with a warning. */
function resolvePolicy(asked: Policy = {}, limits: Limits, warnings: Warning[]): RunSpec['policy'] {
  const within = (param: string, value: number | undefined, { default: usual, min, max }: Range) => {
    const given = Math.min(max, Math.max(min, value ?? usual))
    if (value === undefined || value === given) return given
    const message = `The agent asks for ${value}; this server allows ${min} to ${max}, so it is ${given}.`
    warnings.push({ code: 'policy_out_of_range', param, message })
    return given
  }
  const runLimits = RUN_LIMITS.map((name) => [name, within(`policy.${name}`, asked[name], limits[name])])
  const sandboxLimits = (Object.keys(limits.sandbox) as (keyof SandboxLimits)[]).map((name) => [
    name,
    within(`policy.sandbox.${name}`, asked.sandbox?.[name], limits.sandbox[name]),
  ])
  return {
    ...(Object.fromEntries(runLimits) as RunLimits),
    maxCost: asked.maxCost,
    sandbox: Object.fromEntries(sandboxLimits) as SandboxLimits,
    context: {
      compactAt: within('policy.context.compactAt', asked.context?.compactAt, limits.context.compactAt),
      keepTokens: within('policy.context.keepTokens', asked.context?.keepTokens, limits.context.keepTokens),
      ...(asked.context?.instructions !== undefined && { instructions: asked.context.instructions }),
    },
  }
}

/** Hints on how the operator can provide a missing tool. */
const REMEDIES: Partial<Record<ToolName, string>> = {
  browser:
    ' Its operator can install Chromium where sandboxes find it: apt-get install chromium-headless-shell (or chromium).',
  web_search: ' Its operator can name a search service with `search.provider`.',
}

function resolveTools(names: readonly string[], offer: Offer, warnings: Warning[]): ToolName[] {
  const enabled = new Set<ToolName>()
  names.forEach((name, i) => {
    if (!isToolName(name)) {
      warnings.push({
        code: 'unknown_tool',
        param: `tools[${i}]`,
        message: `There is no tool ${quote(name)}; it was ignored.`,
      })
    } else if (!offer.tools.has(name)) {
      warnings.push({
        code: 'tool_unavailable',
        param: `tools[${i}]`,
        message: `The tool ${name} is not available on this server; the run goes on without it.${REMEDIES[name] ?? ''}`,
      })
    } else enabled.add(name)
  })
  return [...enabled]
}

/** Pins skills to versions. Skills do not enable tools: a tool that a skill needs and that is not enabled is a warning. */
function resolveSkills(
  refs: readonly string[],
  tools: readonly ToolName[],
  servers: readonly McpServer[],
  offer: Offer,
  warnings: Warning[],
): SkillOffer[] {
  const pins = new Map<string, SkillOffer>()
  refs.forEach((ref, i) => {
    const warn = (code: string, message: string) => warnings.push({ code, param: `skills[${i}]`, message })
    const found = offer.skills.get(ref)
    if (!found) {
      warn('unknown_skill', unknownSkill(ref))
      return
    }
    const other = pins.get(found.name)
    if (other) {
      if (other.version !== found.version) {
        warn('skill_repeated', `${skillRef(other)} is enabled already; ${quote(ref)} was ignored.`)
      }
      return
    }
    pins.set(found.name, found)
    const names = servers.map(({ name }) => name)
    const missing = missingTools(found.allowedTools, new Set(tools), names)
    if (missing.length > 0) {
      const few = missing.slice(0, 10).join(', ')
      warn('skill_tool_missing', `The skill ${found.name} needs ${few}, and no enabled tool can do that.`)
    }
  })
  return [...pins.values()]
}

function unknownSkill(ref: string): string {
  const asked = parseSkillRef(ref)
  return asked?.version === undefined
    ? `No skill ${quote(ref)} is registered.`
    : `No skill ${quote(asked.name)} with a version ${asked.version} is registered.`
}

/** A server without a URL is the operator's server of that name. */
function resolveMcp(servers: readonly McpServer[], { mcpServers }: Offer, warnings: Warning[]): McpServer[] {
  return servers.filter(({ name, url }, i) => {
    if (url !== undefined || mcpServers.has(name)) return true
    warnings.push({
      code: 'mcp_unavailable',
      param: `mcp[${i}]`,
      message: `No MCP server ${quote(name)} is registered here, and it has no url.`,
    })
    return false
  })
}

function quote(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name)
}
