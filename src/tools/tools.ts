/** The built-in tools that need only the run's sandbox. */
import type { ToolName } from '../domain/agent.ts'
import type { Network } from '../domain/network.ts'
import { createCodeExecution } from './code-execution.ts'
import { createFileRead } from './file-read.ts'
import { createFileWrite } from './file-write.ts'
import type { Tool, ToolProvider } from './port.ts'

export function createTools(network?: Network): ReadonlyMap<ToolName, Tool> {
  return new Map<ToolName, Tool>([
    ['code_execution', createCodeExecution(network)],
    ['file_read', createFileRead()],
    ['file_write', createFileWrite()],
  ])
}

/** Provides the sandbox tools that a run enables. */
export function createSandboxTools(): ToolProvider {
  return {
    offers: [...createTools().keys()],
    async open({ spec }) {
      const tools = createTools(spec.network)
      const enabled = spec.tools.flatMap((name) => tools.get(name) ?? [])
      return enabled.length === 0 ? undefined : { tools: () => enabled, async close() {} }
    },
  }
}
