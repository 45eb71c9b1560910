/** The agent of one run: what its loop, its model calls and its tool calls share. */
import type { CatalogueEntry } from '../../models/port.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Run } from '../run/run.ts'
import type { CodeCalls } from './code-calls.ts'
import type { ContextWindows } from './context-size.ts'
import type { Conversation } from './conversation.ts'
import type { RunFrame } from './frame.ts'
import type { createIgnoredReporter } from './ignored-settings.ts'
import type { Notices } from './notices.ts'
import type { Toolbox } from './toolbox.ts'

export interface AgentContext {
  readonly deps: EngineDependencies
  readonly run: Run
  /** The model that was asked for, followed by its fallbacks. */
  readonly models: readonly [CatalogueEntry, ...CatalogueEntry[]]
  readonly toolbox: Toolbox
  readonly codeCalls: CodeCalls
  readonly frame: RunFrame
  readonly conversation: Conversation
  /** Records the parameters that a call ignored, each once. */
  readonly reportIgnored: ReturnType<typeof createIgnoredReporter>
  readonly notices: Notices
  readonly windows: ContextWindows
  /** The number of the next step in the trace. */
  readonly nextStep: () => number
  /** The number of the next turn with calls (`tool_call.batch`). */
  readonly nextBatch: () => number
  /** Ends the process in the sandbox. The run's own signal only ends the waiting for it. */
  readonly kill: AbortSignal
}
