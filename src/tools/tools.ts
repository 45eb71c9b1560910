/** The built-in tools that need only the run's sandbox. */
import type { ToolName } from '../domain/agent.ts'
import type { Network } from '../domain/network.ts'
import { createCodeExecution } from './code-execution.ts'
import { createFileRead } from './file-read.ts'
import { createFileWrite } from './file-write.ts'
import { createFind } from './find.ts'
import type { Tool, ToolProvider } from './port.ts'

const OFFERED = ['code_execution', 'file_read', 'file_write'] as const satisfies readonly ToolName[]

/** By name. The model gets `find` with `file_read`; callers can't name it in `tools`. */
export function createTools(network?: Network, servers?: readonly string[]): ReadonlyMap<ToolName | 'find', Tool> {
  return new Map<ToolName | 'find', Tool>([
    ['code_execution', createCodeExecution(network, servers)],
    ['file_read', createFileRead()],
    ['find', createFind()],
    ['file_write', createFileWrite()],
  ])
}

/** Provides the sandbox tools that a run enables. */
export function createSandboxTools(): ToolProvider {
  return {
    offers: OFFERED,
    async open({ spec }) {
      const tools = createTools(
        spec.network,
        spec.mcp.map(({ name }) => name),
      )
      const names = spec.tools.flatMap((name) => (name === 'file_read' ? ([name, 'find'] as const) : [name]))
      const enabled = names.flatMap((name) => tools.get(name) ?? [])
      return enabled.length === 0 ? undefined : { tools: () => enabled, async close() {} }
    },
  }
}
