/** MCP servers as a request, an agent and a run have them. */
import type { Secret, SecretType } from './credential.ts'

/** Authentication to a server, as the caller sent it. A stored agent has only the first two kinds. */
export type Authentication =
  | { readonly type: 'none' }
  | { readonly type: 'credential'; readonly credentialId: string }
  | Secret

/**
 * When a person must approve a tool call: always, never, for the listed tools, or for all tools except those in the
 * `allowed-tools` of an enabled skill.
 */
export type RequireApproval = boolean | 'always' | 'never' | 'unless_skill' | readonly string[]

export interface McpServer {
  readonly name: string
  /** Undefined for a server that the operator registered under this name. */
  readonly url?: string
  readonly authentication?: Authentication
  /** Tools by the server's own names. Undefined: all. */
  readonly allowedTools?: readonly string[]
  readonly requireApproval?: RequireApproval
}

/** A server with the tools that the run's skills approve (`*` for all), if `requireApproval` is `unless_skill`. */
export interface ResolvedMcpServer extends McpServer {
  readonly preApproved?: readonly string[]
}

/** Authentication as a run stores it: secrets are sealed for that run. */
export type SealedAuthentication =
  | { readonly type: 'none' }
  | { readonly type: 'credential'; readonly credentialId: string }
  | { readonly type: SecretType; readonly sealed: string }

export type RunMcpServer = Omit<ResolvedMcpServer, 'authentication'> & {
  readonly authentication?: SealedAuthentication
}

/** The owner that a run's secret is sealed for. */
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
