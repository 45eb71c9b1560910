/**
 * MCP servers as a provider of tools: those that a run names, by their address or by the operator's registration. All are
 * connected before the first turn, side by side; one that can't be reached or refuses the sign-in is a warning, and the
 * run goes on without it.
 */
import type { Credentials } from '../../accounts/credentials.ts'
import type { McpServerConfig } from '../../config.ts'
import type { LibraryTerms } from '../../egress/port.ts'
import type { ToolProvider } from '../port.ts'
import { createKeyedMutex } from './keyed-mutex.ts'

export interface McpOptions {
  /** Registered by the operator. */
  readonly servers: Readonly<Record<string, McpServerConfig>>
  readonly credentials: Credentials
  /** Opens what was sealed for a run. Throws where it can't be. */
  readonly unseal: (sealed: string, owner: readonly string[]) => string
  /** The guard as a fetch. Leaves redirects to whoever asked. */
  readonly fetchWith: (terms: LibraryTerms) => typeof globalThis.fetch
  /** Where the secrets of registered servers stand. */
  readonly env: Readonly<Record<string, string | undefined>>
}

export function createMcp(options: McpOptions): ToolProvider {
  const renewals = createKeyedMutex()
  return {
    offers: [],
    async open(run) {
      if (run.spec.mcp.length === 0) return undefined
      // The client library is large: it is loaded by the first run that has a use for it.
      const { openServers } = await import('./open-servers.ts')
      return openServers(options, renewals, run)
    },
  }
}
