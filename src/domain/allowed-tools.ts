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
  ...['read', 'glob', 'grep', 'ls', 'view', 'readfile', 'search'].map((name) => [name, TO_READ] as const),
  ...['write', 'edit', 'multiedit', 'notebookedit', 'writefile', 'create'].map((name) => [name, TO_WRITE] as const),
  ['websearch', ['web_search']],
  ...['webfetch', 'fetch'].map((name) => [name, TO_BROWSE] as const),
])

/** `Bash(git:*)` → `Bash`: what stands in brackets narrows a permission, and is no tool. */
function toolOf(entry: string): string {
  return entry.replace(/\(.*$/s, '')
}

/** Any one of them does what the entry asks for. Undefined where it names none that we know; MCP tools are not ours. */
export function toolsFor(entry: string): readonly ToolName[] | undefined {
  const name = toolOf(entry)
  if (isToolName(name)) return [name]
  return SAME.get(name.toLowerCase().replaceAll(/[_-]/g, ''))
}

/** `mcp__tracker__find` and `tracker__find` are both the tool `find` of the server `tracker`: the name that a model calls. */
export function mcpToolOf(entry: string): string | undefined {
  const name = toolOf(entry).replace(/^mcp__/, '')
  return /^[A-Za-z0-9_-]+?__[A-Za-z0-9_.*-]+$/.test(name) ? name : undefined
}

/** The entries that nothing enabled can do. */
export function missingTools(allowed: readonly string[], enabled: ReadonlySet<ToolName>): string[] {
  return allowed.filter((entry) => toolsFor(entry)?.some((name) => enabled.has(name)) === false)
}
