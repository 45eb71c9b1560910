/** The built-in tools that need only the run's sandbox. */
import type { ToolName } from '../domain/agent.ts'
import type { Network } from '../domain/network.ts'
import { createCodeExecution } from './code-execution.ts'
import { createFileRead } from './file-read.ts'
import { createFileWrite } from './file-write.ts'
import { createFind } from './find.ts'
import { createJob } from './job.ts'
import type { Tool, ToolProvider } from './port.ts'

const OFFERED = ['code_execution', 'file_read', 'file_write'] as const satisfies readonly ToolName[]

/** Tools that come with another. Callers can't name them in `tools`. */
const COMPANIONS: Readonly<Partial<Record<ToolName, 'find' | 'job'>>> = { file_read: 'find', code_execution: 'job' }

export function createTools(network?: Network, servers?: readonly string[]): ReadonlyMap<string, Tool> {
  return new Map<string, Tool>([
    ['code_execution', createCodeExecution(network, servers)],
    ['job', createJob()],
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
      const names = spec.tools.flatMap((name) => [name, COMPANIONS[name] ?? []].flat())
      const enabled = names.flatMap((name) => tools.get(name) ?? [])
      return enabled.length === 0 ? undefined : { tools: () => enabled, async close() {} }
    },
  }
}
