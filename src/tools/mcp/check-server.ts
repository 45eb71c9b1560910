/**
 * Whether an MCP server answers now, and with what tools: for a person who looks. It goes the way of a run's own connection:
 * through the guard, by the same sign-in, within the same bounds; and nothing secret is told.
 */
import type { RunMcpServer } from '../../domain/mcp.ts'
import { createKeyedMutex } from './keyed-mutex.ts'
import type { McpOptions } from './provider.ts'

export interface McpCheck {
  /** Within what its project and the operator allow; as a model is told of them. */
  readonly tools: readonly { readonly name: string; readonly description: string }[]
  /** Why there are none, or fewer than it has; sentences for people. */
  readonly problems: readonly string[]
  /** Milliseconds. */
  readonly tookMs: number
}

/** Never rejects, but with the signal. */
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
      // It is no run: a secret that was sealed for one can't be opened here.
      interactionId: '',
      spec: { mcp: [server] },
      signal,
      // What a run would be told of this server, without its name and what the run does then.
      warn({ message }) {
        problems.push(message.replace(/^The MCP server \S+(?: can't be used, and the run goes on without it\.|:) /, ''))
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
