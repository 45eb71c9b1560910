/**
 * `allowed-tools` of a skill, mapped to this server's tools. Skills name the tools of the agent that they were written for;
 * the table lists our equivalents. An unknown name requests nothing.
 */
import { isToolName, type ToolName } from './agent.ts'

const BY_CODE = ['code_execution'] as const
const TO_READ = ['file_read', 'code_execution'] as const
const TO_WRITE = ['file_write', 'code_execution'] as const
const TO_BROWSE = ['browser'] as const

/** Our equivalents by tool name, in lower case, without `_` and `-`. Any one tool of a list is enough. */
const SAME: ReadonlyMap<string, readonly ToolName[]> = new Map<string, readonly ToolName[]>([
  ...['bash', 'shell', 'sh', 'terminal', 'python', 'node', 'javascript', 'repl', 'execute', 'runcommand'].map(
    (name) => [name, BY_CODE] as const,
  ),
  ...['read', 'glob', 'grep', 'ls', 'list', 'view', 'readfile', 'search'].map((name) => [name, TO_READ] as const),
  ...['write', 'edit', 'multiedit', 'notebookedit', 'writefile', 'create'].map((name) => [name, TO_WRITE] as const),
  ['websearch', ['web_search']],
  ...['webfetch', 'fetch'].map((name) => [name, TO_BROWSE] as const),
])

/** The tool's name without its restriction: `Bash(git:*)` → `Bash`. */
function toolOf(entry: string): string {
  return entry.replace(/\(.*$/s, '')
}

/** The tools that do what the entry requests; any one is enough. Undefined for an unknown name. */
export function toolsFor(entry: string): readonly ToolName[] | undefined {
  const name = toolOf(entry)
  if (isToolName(name)) return [name]
  return SAME.get(name.toLowerCase().replaceAll(/[_-]/g, ''))
}

/** True for a tool of an MCP server, or a whole server: `mcp__tracker__find`, `mcp__tracker`, `tracker__find`. */
export function isMcpEntry(entry: string): boolean {
  return toolOf(entry).includes('__')
}

/** The entries that name tools of this MCP server, by the server's own names; `*` for all of them. */
function mcpToolsFor(allowed: readonly string[], server: string): string[] {
  return allowed.filter(isMcpEntry).flatMap((entry) => {
    const name = toolOf(entry).replace(/^mcp__/, '')
    if (name === server) return ['*']
    return name.startsWith(`${server}__`) ? [name.slice(server.length + 2)] : []
  })
}

/** The tools of this MCP server that a skill approves. A restricted entry (with brackets) approves nothing. */
export function preApproved(allowed: readonly string[], server: string): string[] {
  return mcpToolsFor(
    allowed.filter((entry) => !entry.includes('(')),
    server,
  )
}

/** The entries that no enabled tool satisfies. */
export function missingTools(
  allowed: readonly string[],
  enabled: ReadonlySet<ToolName>,
  servers: readonly string[],
): string[] {
  return allowed.filter((entry) =>
    isMcpEntry(entry)
      ? !servers.some((server) => mcpToolsFor([entry], server).length > 0)
      : toolsFor(entry)?.some((name) => enabled.has(name)) === false,
  )
}
