/** The configuration of an agent or a run as the form holds it: without null or missing values. */
import type { Agent, AgentPatch, McpServer, NewAgent, Policy } from '../api/types.gen.js'
import { type Parameters, parametersOf, patchOfParameters } from './parameters.ts'

export interface Settings {
  readonly model: string
  readonly systemInstruction: string
  readonly tools: readonly string[]
  readonly skills: readonly string[]
  readonly mcp: readonly McpServer[]
  readonly network: NonNullable<NewAgent['network']>
  readonly policy: Policy
  readonly parameters: Parameters
}

export const NO_SETTINGS: Settings = {
  model: '',
  systemInstruction: '',
  tools: [],
  skills: [],
  mcp: [],
  network: 'disabled',
  policy: {},
  parameters: {},
}

export function settingsOf(agent: Agent): Settings {
  const { model, systemInstruction = '', tools, skills, network = 'disabled', policy } = agent
  const plain = { model, systemInstruction, tools, skills, network, policy }
  return { ...plain, mcp: agent.mcp as readonly McpServer[], parameters: parametersOf(agent) }
}

/** The settings as an API request. Default values are left out. */
export function toRequest(settings: Settings): Partial<NewAgent> {
  const { model, systemInstruction, tools, skills, mcp, network, policy, parameters } = settings
  return {
    ...parameters,
    ...(model && { model }),
    ...(systemInstruction && { systemInstruction }),
    ...(tools.length > 0 && { tools: [...tools] }),
    ...(skills.length > 0 && { skills: [...skills] }),
    ...(mcp.length > 0 && { mcp: [...mcp] }),
    ...(network !== 'disabled' && { network }),
    ...(Object.keys(policy).length > 0 && { policy }),
  }
}

/** The settings as a merge patch: null clears a value. */
export function toPatch({
  model,
  systemInstruction,
  tools,
  skills,
  mcp,
  network,
  policy,
  parameters,
}: Settings): Partial<NewAgent> {
  const limits = { maxTurnDuration: null, maxOutputTokens: null, maxCost: null, maxToolDuration: null, ...policy }
  return {
    model: model || null,
    systemInstruction: systemInstruction || null,
    tools: [...tools],
    skills: [...skills],
    mcp: [...mcp],
    network,
    policy: limits,
    ...patchOfParameters(parameters),
  }
}

type Json = { readonly [name: string]: unknown }

/** The merge patch that restores an earlier version of an agent. */
export function toRestore(version: Agent, now: Agent): AgentPatch {
  const whole = (agent: Agent) => {
    const { displayName, description, systemInstruction, model, tools, skills, mcp, network, policy, labels } = agent
    const plain = { displayName, description, systemInstruction, model, tools, skills, mcp, network, policy, labels }
    return { ...plain, ...parametersOf(agent) } as Json
  }
  return mergePatch(whole(now), whole(version))
}

/** The merge patch (RFC 7396) that turns the one into the other. */
function mergePatch(from: Json, to: Json): Json {
  const gone = Object.keys(from).filter((key) => to[key] === undefined)
  const stays = Object.entries(to).filter(([, value]) => value !== undefined)
  return Object.fromEntries([
    ...gone.map((key) => [key, null] as const),
    ...stays.map(
      ([key, value]) => [key, isObject(value) && isObject(from[key]) ? mergePatch(from[key], value) : value] as const,
    ),
  ])
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
