/** A run's request: as it can be looked at, and as it can be made again. */
import { type Settings, toPatch, toRequest } from '../agent-form/settings.ts'
import type { Interaction, NewInteraction } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { fileBytes } from '../trace/files.tsx'
import { base64 } from '../ui/base64.ts'
import { type Attached, MAX_ATTACHED_BYTES } from './composer.tsx'

/** What would run the same again: the instruction with what it was resolved to. Files by their names alone. */
export function requestOf(run: Interaction): object {
  const { systemInstruction, model, tools, skills, mcp, network, policy, responseFormat, files } = run.resolved
  return {
    ...{ instruction: run.instruction, ...originOf(run) },
    ...{ systemInstruction, model, tools, skills, mcp, network, policy, responseFormat },
    ...(files.length > 0 && { files: files.map(({ name, size, sha256 }) => ({ name, size, sha256 })) }),
  }
}

/** What a run has beside its settings and its files. */
export type Origin = Pick<NewInteraction, 'agentId' | 'agentVersion' | 'labels' | 'previousInteractionId'> &
  Pick<NewInteraction, 'responseFormat'>

export function originOf({ agentId, agentVersion, labels, previousInteractionId, resolved }: Interaction): Origin {
  return { agentId, agentVersion, labels, previousInteractionId, responseFormat: resolved.responseFormat }
}

/** Beside an agent every setting is said, so that none of the agent's own comes in its place. */
export function rerunRequest(origin: Origin, settings: Settings): Partial<NewInteraction> {
  return { ...origin, ...(origin.agentId ? toPatch(settings) : toRequest(settings)) }
}

/** Secrets are not told, not even to whoever sent them: servers that were signed in to by one have none here. */
export function settingsOfRun({ resolved }: Interaction): Settings {
  const { model, systemInstruction = '', tools, skills, mcp, network, policy } = resolved
  const servers = mcp.map(({ authentication, ...server }) => ({
    ...server,
    ...(authentication?.type === 'credential' && { authentication }),
  }))
  return { model, systemInstruction, tools, skills, mcp: servers as Settings['mcp'], network, policy }
}

export function droppedSignIns({ resolved }: Interaction): readonly string[] {
  return resolved.mcp
    .filter(({ authentication }) => authentication && !['credential', 'none'].includes(authentication.type))
    .map(({ name }) => name)
}

/** Rejects with a Problem where they can't go along. */
export async function filesOfRun({ resolved }: Interaction): Promise<readonly Attached[]> {
  const { files } = resolved
  if (files.reduce((sum, { size }) => sum + size, 0) > MAX_ATTACHED_BYTES) {
    const names = files.map(({ name }) => name).join(', ')
    throw new Problem(`Its files are too large to go along from here: ${names}`, {
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
