/** A run's request, for display and for running it again. */
import { parametersOf } from '../agent-form/parameters.ts'
import { type Settings, toPatch, toRequest } from '../agent-form/settings.ts'
import type { Interaction, NewInteraction } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { fileBytes } from '../trace/files.tsx'
import { base64 } from '../ui/base64.ts'
import { type Attached, MAX_ATTACHED_BYTES } from './composer.tsx'

/** The instruction with the resolved configuration. Files without their content. */
export function requestOf(run: Interaction): object {
  const { systemInstruction, model, tools, skills, mcp, network, policy, responseFormat, output, files } = run.resolved
  return {
    ...{ instruction: run.instruction, ...originOf(run) },
    ...{ systemInstruction, model, tools, skills, mcp, network, policy, responseFormat, output },
    ...parametersOf(run.resolved),
    ...(files.length > 0 && { files: files.map(({ name, size, sha256 }) => ({ name, size, sha256 })) }),
  }
}

/** Properties of a run in addition to its settings and files. */
export type Origin = Pick<NewInteraction, 'agentId' | 'agentVersion' | 'labels' | 'previousInteractionId'> &
  Pick<NewInteraction, 'responseFormat' | 'output'>

export function originOf({ agentId, agentVersion, labels, previousInteractionId, resolved }: Interaction): Origin {
  return {
    agentId,
    agentVersion,
    labels,
    previousInteractionId,
    responseFormat: resolved.responseFormat,
    output: resolved.output,
  }
}

/** The request of a repeated run. With an agent, every setting is included, so that none of the agent's applies. */
export function rerunRequest(origin: Origin, settings: Settings): Partial<NewInteraction> {
  return { ...origin, ...(origin.agentId ? toPatch(settings) : toRequest(settings)) }
}

/** The settings of a run. The API never returns secrets, so sign-ins that were sent with the run are missing. */
export function settingsOfRun({ resolved }: Interaction): Settings {
  const { model, systemInstruction = '', tools, skills, mcp, network, policy } = resolved
  const servers = mcp.map(({ authentication, ...server }) => ({
    ...server,
    ...(authentication?.type === 'credential' && { authentication }),
  }))
  const plain = { model, systemInstruction, tools, skills, network, policy }
  return { ...plain, mcp: servers as Settings['mcp'], parameters: parametersOf(resolved) }
}

/** Names of the MCP servers whose sign-ins were sent with the run. */
export function droppedSignIns({ resolved }: Interaction): readonly string[] {
  return resolved.mcp
    .filter(({ authentication }) => authentication && !['credential', 'none'].includes(authentication.type))
    .map(({ name }) => name)
}

/** Downloads the input files. Rejects with a Problem if they are too large. */
export async function filesOfRun({ resolved }: Interaction): Promise<readonly Attached[]> {
  const { files } = resolved
  if (files.reduce((sum, { size }) => sum + size, 0) > MAX_ATTACHED_BYTES) {
    const names = files.map(({ name }) => name).join(', ')
    throw new Problem(`The input files are too large to attach again: ${names}`, {
      code: 'payload_too_large',
      status: 413,
    })
  }
  return Promise.all(
    files.map(async (file) => ({
      name: file.name,
      size: file.size,
      content: await base64(new Blob([await fileBytes(file)])),
    })),
  )
}
