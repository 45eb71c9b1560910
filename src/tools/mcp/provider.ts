/**
 * The tool provider for MCP servers, which a run names by address or by the operator's registration. All servers are connected
 * in parallel before the first turn. A server that can't be used is a warning, and the run continues without it.
 */
import type { Credentials } from '../../accounts/credentials.ts'
import type { McpServerConfig } from '../../config.ts'
import type { LibraryTerms } from '../../egress/port.ts'
import type { ToolProvider } from '../port.ts'
import { createKeyedMutex } from './keyed-mutex.ts'

export interface McpOptions {
  /** The servers that the operator registered, by name. */
  readonly servers: Readonly<Record<string, McpServerConfig>>
  readonly credentials: Credentials
  /** Decrypts what was sealed for a run. Throws if that is not possible. */
  readonly unseal: (sealed: string, owner: readonly string[]) => string
  /** The egress guard as a fetch function. Does not follow redirects. */
  readonly fetchWith: (terms: LibraryTerms) => typeof globalThis.fetch
  /** Environment variables with the secrets of registered servers. */
  readonly env: Readonly<Record<string, string | undefined>>
}

export function createMcp(options: McpOptions): ToolProvider {
  const renewals = createKeyedMutex()
  return {
    offers: [],
    async open(run) {
      if (run.spec.mcp.length === 0) return undefined
      // The client library is large: the first run that uses it loads it.
      const { openServers } = await import('./open-servers.ts')
      return openServers(options, renewals, run)
    },
  }
}
