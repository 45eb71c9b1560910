/** Accepts the MCP servers of a request into a run's spec: seals their secrets, and warns about unusable servers. */
import type { Credentials } from '../accounts/credentials.ts'
import type { Vault } from '../accounts/vault.ts'
import { hostAllowed } from '../domain/credential.ts'
import type { Warning } from '../domain/event.ts'
import {
  type McpServer,
  type ResolvedMcpServer,
  type RunMcpServer,
  type SealedAuthentication,
  sealOwner,
} from '../domain/mcp.ts'
import type { Egress } from '../egress/port.ts'

interface AcceptDependencies {
  readonly egress: Pick<Egress, 'faultOf'>
  readonly credentials: Credentials
  readonly vault: Vault
}

export interface McpAcceptance {
  readonly mcp: readonly RunMcpServer[]
  readonly warnings: readonly Warning[]
}

export async function acceptServers(
  deps: AcceptDependencies,
  projectId: string,
  interactionId: string,
  servers: readonly ResolvedMcpServer[],
): Promise<McpAcceptance> {
  const mcp: RunMcpServer[] = []
  const warnings: Warning[] = []
  for (const [i, { authentication, ...server }] of servers.entries()) {
    const fault = await faultOf(deps, projectId, { ...server, authentication })
    if (fault) {
      const message = `The MCP server ${server.name} can't be used: ${fault.because}.`
      warnings.push({ code: 'mcp_unavailable', param: `mcp[${i}].${fault.field}`, message })
    } else {
      const owner = sealOwner(interactionId, server.name)
      mcp.push(authentication ? { ...server, authentication: seal(deps.vault, owner, authentication) } : server)
    }
  }
  return { mcp, warnings }
}

async function faultOf(
  { egress, credentials }: AcceptDependencies,
  projectId: string,
  { url, authentication }: McpServer,
): Promise<{ readonly field: string; readonly because: string } | undefined> {
  const refused = url === undefined ? undefined : egress.faultOf(url)
  if (refused !== undefined) return { field: 'url', because: `its address ${refused}` }
  if (authentication?.type !== 'credential') return undefined
  const { credentialId } = authentication
  const found = await credentials.find(projectId, credentialId)
  const field = 'authentication.credentialId'
  if (!found) return { field, because: `there is no credential ${JSON.stringify(credentialId)}` }
  if (url === undefined || hostAllowed(found.allowedHosts, new URL(url))) return undefined
  return { field, because: `the credential ${JSON.stringify(credentialId)} may not be sent to its host` }
}

function seal(
  vault: Vault,
  owner: readonly string[],
  authentication: McpServer['authentication'] & {},
): SealedAuthentication {
  const { type } = authentication
  if (type === 'none' || type === 'credential') return authentication
  return { type, sealed: vault.seal(JSON.stringify(authentication), owner) }
}
