/**
 * Checks for the console whether an MCP server answers now, and which tools it has. Connects as a run would: through the
 * egress guard, with the same sign-in and limits. Secrets are redacted.
 */
import type { RunMcpServer } from '../../domain/mcp.ts'
import { createKeyedMutex } from './keyed-mutex.ts'
import type { McpOptions } from './provider.ts'

export interface McpCheck {
  /** The tools that the project and the operator allow, with the model's names for them. */
  readonly tools: readonly { readonly name: string; readonly description: string }[]
  /** Why there are no tools, or fewer than the server has. */
  readonly problems: readonly string[]
  readonly tookMs: number
}

/** Rejects only if the signal aborts. */
export type CheckMcp = (projectId: string, server: RunMcpServer, signal: AbortSignal) => Promise<McpCheck>

export function createMcpCheck(options: McpOptions): CheckMcp {
  const renewals = createKeyedMutex()
  return async (projectId, server, signal) => {
    const { openServers } = await import('./open-servers.ts')
    const startedAt = performance.now()
    const problems: string[] = []
    const secrets = new Set<string>()
    const shown = (text: string) => [...secrets].reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
    const source = await openServers(options, renewals, {
      projectId,
      // There is no run, so secrets that were sealed for a run can't be opened.
      interactionId: '',
      spec: { mcp: [server] },
      signal,
      // Removes the parts of the message that are about a run.
      warn({ message }) {
        problems.push(
          message.replace(/^The MCP server \S+(?: can't be used, and the run continues without it\.|:) /, ''),
        )
      },
      conceal(texts) {
        for (const text of texts) if (text !== '') secrets.add(text)
      },
      audit: () => async () => {},
    })
    try {
      const tools = source
        .tools()
        .map(({ definition: { name, description } }) => ({ name: shown(name), description: shown(description) }))
      return { tools, problems: problems.map(shown), tookMs: Math.round(performance.now() - startedAt) }
    } finally {
      await source.close()
    }
  }
}
