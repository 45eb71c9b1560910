/** What an agent stores and a run may say for itself, as the form holds it: nothing is null, and nothing is absent. */
import type { Agent, McpServer, NewAgent, Policy } from '../api/types.gen.js'

export interface Settings {
  readonly model: string
  readonly systemInstruction: string
  readonly tools: readonly string[]
  readonly skills: readonly string[]
  readonly mcp: readonly McpServer[]
  readonly network: NonNullable<NewAgent['network']>
  readonly policy: Policy
}

export const NO_SETTINGS: Settings = {
  model: '',
  systemInstruction: '',
  tools: [],
  skills: [],
  mcp: [],
  network: 'disabled',
  policy: {},
}

export function settingsOf(agent: Agent): Settings {
  const { model, systemInstruction = '', tools, skills, network = 'disabled', policy } = agent
  return { model, systemInstruction, tools, skills, mcp: agent.mcp as readonly McpServer[], network, policy }
}

/** As the API takes them: what says nothing is left out. */
export function toRequest(settings: Settings): Partial<NewAgent> {
  const { model, systemInstruction, tools, skills, mcp, network, policy } = settings
  return {
    ...(model && { model }),
    ...(systemInstruction && { systemInstruction }),
    ...(tools.length > 0 && { tools: [...tools] }),
    ...(skills.length > 0 && { skills: [...skills] }),
    ...(mcp.length > 0 && { mcp: [...mcp] }),
    ...(network !== 'disabled' && { network }),
    ...(Object.keys(policy).length > 0 && { policy }),
  }
}

/** As a merge patch takes them: what was emptied is said, so that it is cleared. */
export function toPatch({
  model,
  systemInstruction,
  tools,
  skills,
  mcp,
  network,
  policy,
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
  }
}
