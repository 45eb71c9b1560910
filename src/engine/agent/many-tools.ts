/** Decides whether a run has too many tools to declare each of them to the model. */
import { estimateTokens } from '../../domain/usage.ts'
import type { ToolDefinition } from '../../models/port.ts'
import { CALL_TOOL, countByServer } from '../../tools/find-tools.ts'
import type { Tool } from '../../tools/port.ts'

const MAX_DECLARED = 40
/** Maximum share of the context window, or tokens if the window is unknown. */
const MAX_SHARE = 0.1
const MAX_TOKENS = 12_000

/** `window`: the model's context window in tokens, if it is known. */
export function searchIsNeeded(tools: readonly Tool[], window: number | undefined): boolean {
  if (!tools.some(({ mcp }) => mcp)) return false
  if (tools.length > MAX_DECLARED) return true
  const characters = tools.reduce((sum, { definition }) => sum + JSON.stringify(definition).length, 0)
  return estimateTokens(characters) > (window === undefined ? MAX_TOKENS : window * MAX_SHARE)
}

/** Whether a run with these definitions searches its tools. */
export function searches(declared: readonly Pick<ToolDefinition, 'name'>[]): boolean {
  return declared.some(({ name }) => name === CALL_TOOL.name)
}

/** Text for the system prompt. `tools`: those at the start of the run. */
export function aboutSearch(tools: readonly Tool[]): string {
  return `The tools of the MCP servers are not listed. Find them with \`find_tools\` and call them with \`call_tool\`. The servers: ${countByServer(tools) || 'none'}.`
}
