/** Checks the names in a configuration against the models, tools and servers that exist. */
import { type AgentConfig, TOOL_NAMES } from '../domain/agent.ts'
import type { Warning } from '../domain/event.ts'
import { resolve } from '../domain/resolve.ts'
import type { Catalogue } from '../models/port.ts'
import type { Edge } from './edge.ts'
import { wrongField } from './request/fields.ts'

/** Throws ErrandError `invalid_request` that lists the known models. */
export function checkModel(catalogue: Catalogue, model: string | undefined): void {
  if (model === undefined || catalogue.get(model)) return
  throw wrongField('model', `is not a model of this server; it has ${catalogue.names().join(', ')}`)
}

/** Warnings for settings that a run would ignore, from the same code that resolves a run. */
export async function unusedSettings(
  config: AgentConfig,
  projectId: string,
  { catalogue, limits, mcpServers, skills }: Pick<Edge, 'catalogue' | 'limits' | 'mcpServers' | 'skills'>,
): Promise<readonly Warning[]> {
  const offer = {
    defaultModel: catalogue.defaultName,
    limits,
    tools: new Set(TOOL_NAMES),
    mcpServers,
    skills: await skills.lookUp(projectId, config.skills ?? []),
  }
  return resolve({ instruction: '', onDisconnect: 'continue' }, config, undefined, offer).warnings
}
