/**
 * `allowed-tools` of a skill, in this server's words. Skills name the tools of the agent that they were written for; here
 * stands which of ours do the same. A name of no tool that we know asks for nothing.
 */
import { isToolName, type ToolName } from './agent.ts'

const BY_CODE = ['code_execution'] as const
const TO_READ = ['file_read', 'code_execution'] as const
const TO_WRITE = ['file_write', 'code_execution'] as const
const TO_BROWSE = ['browser'] as const

/** Lower case, without `_` and `-`. Any one tool of a list will do. */
const SAME: ReadonlyMap<string, readonly ToolName[]> = new Map<string, readonly ToolName[]>([
  ...['bash', 'shell', 'sh', 'terminal', 'python', 'node', 'javascript', 'repl', 'execute', 'runcommand'].map(
    (name) => [name, BY_CODE] as const,
  ),
  ...['read', 'glob', 'grep', 'ls', 'list', 'view', 'readfile', 'search'].map((name) => [name, TO_READ] as const),
  ...['write', 'edit', 'multiedit', 'notebookedit', 'writefile', 'create'].map((name) => [name, TO_WRITE] as const),
  ['websearch', ['web_search']],
  ...['webfetch', 'fetch'].map((name) => [name, TO_BROWSE] as const),
])

/** `Bash(git:*)` → `Bash`: what stands in brackets narrows a permission, and is no tool. */
function toolOf(entry: string): string {
  return entry.replace(/\(.*$/s, '')
}

/** Any one of them does what the entry asks for. Undefined where it names none that we know. */
export function toolsFor(entry: string): readonly ToolName[] | undefined {
  const name = toolOf(entry)
  if (isToolName(name)) return [name]
  return SAME.get(name.toLowerCase().replaceAll(/[_-]/g, ''))
}

/** Whether it names a tool of an MCP server, or a whole server: `mcp__tracker__find`, `mcp__tracker`, `tracker__find`. */
export function isMcpEntry(entry: string): boolean {
  return toolOf(entry).includes('__')
}

/** The tools of that server among the entries, by the server's own names; `*` for all. */
function mcpToolsFor(allowed: readonly string[], server: string): string[] {
  return allowed.filter(isMcpEntry).flatMap((entry) => {
    const name = toolOf(entry).replace(/^mcp__/, '')
    if (name === server) return ['*']
    return name.startsWith(`${server}__`) ? [name.slice(server.length + 2)] : []
  })
}

/** The same for approval: an entry with brackets allows less than the tool, so it allows nothing here. */
export function preApproved(allowed: readonly string[], server: string): string[] {
  return mcpToolsFor(
    allowed.filter((entry) => !entry.includes('(')),
    server,
  )
}

/** The entries that nothing enabled can do. */
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
