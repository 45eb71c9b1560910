/** The tools of this server by name. A name of the specification that is not here is told to the caller as a warning. */
import type { ToolName } from '../domain/agent.ts'
import { createCodeExecution } from './code-execution.ts'
import { createFileRead } from './file-read.ts'
import { createFileWrite } from './file-write.ts'
import type { Tool } from './port.ts'

export function createTools(): ReadonlyMap<ToolName, Tool> {
  return new Map<ToolName, Tool>([
    ['code_execution', createCodeExecution()],
    ['file_read', createFileRead()],
    ['file_write', createFileWrite()],
  ])
}
