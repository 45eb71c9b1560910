/** The engine's dependencies: built once in src/compose/engine.ts, passed to every run. */
import type { Credentials } from '../accounts/credentials.ts'
import type { Vault } from '../accounts/vault.ts'
import type { Blobs } from '../blobs/port.ts'
import type { Buckets } from '../buckets/port.ts'
import type { Limits } from '../domain/limits.ts'
import type { Egress } from '../egress/port.ts'
import type { Catalogue } from '../models/port.ts'
import type { Sandboxes } from '../sandbox/port.ts'
import type { SkillCache, Skills } from '../skills/port.ts'
import type { Database } from '../store/port.ts'
import type { Emit } from '../telemetry/events.ts'
import type { Log } from '../telemetry/log.ts'
import type { ToolProvider } from '../tools/port.ts'
import type { SchemaChecks } from './agent/schema-checks.ts'
import type { Budgets } from './budgets.ts'
import type { Hub } from './hub.ts'

/** Points in a run where a test can kill the process. Between two points nothing becomes durable or acts outside. */
export type CrashPoint =
  | 'accepted' // stored, and no caller knows
  | 'claimed'
  | 'before-write' // before the next events are durable
  | 'after-write' // the events are durable, possibly the end too, and no subscriber has them
  | 'model-speaks'
  | 'tool-begins' // its intent is durable
  | 'tool-speaks'
  | 'tool-ended' // its result is not durable
  | 'summarized' // the summary of the conversation is not durable
  | 'context-edited' // the edit of the conversation is durable, and no request was made with it
  | 'files-stored'
  | 'sandbox-gone' // and the end is not written

export interface EngineDependencies {
  readonly db: Database
  readonly hub: Hub
  readonly blobs: Blobs
  /** Input files at s3:// and gs:// URLs. */
  readonly buckets: Buckets
  /** Allowed MIME types of files by URL: `text/csv`, `image/*`. Empty: all. */
  readonly fileTypes: readonly string[]
  readonly catalogue: Catalogue
  readonly sandboxes: Sandboxes
  /** For every connection whose target a caller or a model chooses. */
  readonly egress: Egress
  readonly credentials: Credentials
  readonly vault: Vault
  readonly toolProviders: readonly ToolProvider[]
  /** MCP servers that the operator registered. */
  readonly mcpServers: ReadonlySet<string>
  readonly skills: Pick<Skills, 'lookUp'> & Pick<SkillCache, 'mounts'>
  readonly limits: Limits
  readonly budgets: Budgets
  readonly schemas: SchemaChecks
  /** Description of the software in a sandbox, for the model. */
  readonly inside: string
  /** This machine's clock, in milliseconds since 1970. Runs use the database's clock instead. */
  readonly now: () => number
  /** Whether a process of this data directory is alive, by the owner of its leases. */
  readonly lives: (owner: string) => Promise<boolean>
  readonly log: Log
  readonly emit: Emit
  /** Called when a run reaches a crash point. For tests. */
  readonly onPoint?: (point: CrashPoint) => void
}
