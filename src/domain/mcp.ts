/** MCP servers as a request, an agent and a run have them. */
import type { Secret, SecretType } from './credential.ts'

/** How a server is signed in to, as it was sent. A stored agent holds the first two kinds alone. */
export type Authentication =
  | { readonly type: 'none' }
  | { readonly type: 'credential'; readonly credentialId: string }
  | Secret

/**
 * Whether a person has to agree before a tool is used: always, never, for the tools of that name, or for all but those
 * that an enabled skill names in its `allowed-tools`.
 */
export type RequireApproval = boolean | 'always' | 'never' | 'unless_skill' | readonly string[]

export interface McpServer {
  readonly name: string
  /** Undefined: the one that the operator registered under that name. */
  readonly url?: string
  readonly authentication?: Authentication
  /** The server's own names for them. Undefined: all. */
  readonly allowedTools?: readonly string[]
  readonly requireApproval?: RequireApproval
}

/** With what the run's skills name of its tools, `*` for all, where it was asked to go by that. */
export interface ResolvedMcpServer extends McpServer {
  readonly preApproved?: readonly string[]
}

/** As it stands in a run: what was secret is sealed for that run, and nothing else of it is kept. */
export type SealedAuthentication =
  | { readonly type: 'none' }
  | { readonly type: 'credential'; readonly credentialId: string }
  | { readonly type: SecretType; readonly sealed: string }

export type RunMcpServer = Omit<ResolvedMcpServer, 'authentication'> & {
  readonly authentication?: SealedAuthentication
}

/** What a sealed secret of a run belongs to. */
export function sealOwner(interactionId: string, server: string): readonly string[] {
  return ['run', interactionId, server]
}

/** Whether any tool of a server with this setting may have to wait for a person. */
export function mayNeedApproval(require: RequireApproval | undefined): boolean {
  if (typeof require === 'object') return require.length > 0
  return require !== undefined && require !== false && require !== 'never'
}

export function approvalNeeded(
  require: RequireApproval | undefined,
  tool: string,
  preApproved: readonly string[] = [],
): boolean {
  if (require === 'unless_skill') return !preApproved.includes(tool) && !preApproved.includes('*')
  if (typeof require === 'object') return require.includes(tool)
  return require === true || require === 'always'
}
