/** Facts about this server that are found when it starts. `doctor` and the start log show the same ones. */
import type { ToolName } from '../domain/agent.ts'
import type { SandboxFacts } from '../sandbox/port.ts'

export interface ServerFacts {
  readonly version: string
  readonly sandbox: SandboxFacts
  readonly tools: readonly ToolName[]
  /** Built-in tools that this server does not have, each with what the operator can do about it. */
  readonly missingTools: readonly { readonly name: ToolName; readonly remedy: string }[]
  /** The web search service: `searxng`, `brave`, …, or `model` if the model’s provider searches. */
  readonly search: string | undefined
}
