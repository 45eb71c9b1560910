/** The tools that an MCP server lists, fetched again when the server announces a change. */
import type { Client, Tool as ServerTool } from '@modelcontextprotocol/client'

const LIST_MS = 20_000
const MAX_PAGES = 64
/** Maximum number of tools that are read from one server, before `allowedTools` is applied. */
const MAX_LISTED = 5_000
/** A server that announces changes more often than this is ignored from then on. */
const MAX_REFRESHES = 50

export interface ToolList {
  /** The result of the last successful fetch. */
  readonly tools: readonly ServerTool[]
  /** The server has more tools than were read. */
  readonly truncated: boolean
  /** Rejects if the list can't be fetched. */
  fetch(): Promise<void>
  /** Fetches in the background. Never throws; a failed fetch keeps the list as it is. */
  refresh(): void
  /** Resolves when no background fetch is running. */
  settled(): Promise<void>
}

/** `client`: the connected client, which changes when the session is reopened. */
export function createToolList(client: () => Client, signal: AbortSignal): ToolList {
  let tools: readonly ServerTool[] = []
  let truncated = false
  let refreshing: Promise<void> | undefined
  let changed = false
  let refreshes = 0

  async function fetch(): Promise<void> {
    if (!client().getServerCapabilities()?.tools) return
    const found: ServerTool[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const params = cursor === undefined ? {} : { cursor }
      const page = await client().request({ method: 'tools/list', params }, { timeout: LIST_MS, signal })
      found.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor !== undefined && ++pages < MAX_PAGES && found.length < MAX_LISTED)
    tools = found.slice(0, MAX_LISTED)
    truncated = cursor !== undefined || found.length > MAX_LISTED
  }

  return {
    get tools() {
      return tools
    },
    get truncated() {
      return truncated
    },
    fetch,
    // One fetch at a time. Changes announced during a fetch cause one more.
    refresh() {
      changed = true
      refreshing ??= (async () => {
        while (changed && refreshes++ < MAX_REFRESHES) {
          changed = false
          await fetch().catch(() => {})
        }
        refreshing = undefined
      })()
    },
    async settled() {
      await refreshing
    },
  }
}
