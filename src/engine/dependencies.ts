/** What the engine is made of: built once in compose.ts, handed to every run. */
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

/** Places in a run where a test may have the process killed; between two of them nothing becomes durable or is done outside. */
export type CrashPoint =
  | 'accepted' // stored, and nobody was told
  | 'claimed'
  | 'before-write' // of what is told next
  | 'after-write' // durable, and nobody was told: the end too
  | 'model-speaks'
  | 'tool-begins' // its intent is durable
  | 'tool-speaks'
  | 'tool-ended' // its result is not durable
  | 'files-stored'
  | 'sandbox-gone' // and the end is not written

export interface EngineDependencies {
  readonly db: Database
  readonly hub: Hub
  readonly blobs: Blobs
  /** For files that callers name by s3:// and gs://. */
  readonly buckets: Buckets
  /** What a file by URL may be: `text/csv`, `image/*`. Empty: anything. */
  readonly fileTypes: readonly string[]
  readonly catalogue: Catalogue
  readonly sandboxes: Sandboxes
  /** For all that is reached because a caller said so. */
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
  /** What code finds in a sandbox, for the model. */
  readonly inside: string
  /** Wall clock, milliseconds since 1970; a run's is the database's. */
  readonly now: () => number
  /** Whether a process of this place lives, by the name that its leases have. */
  readonly lives: (owner: string) => Promise<boolean>
  readonly log: Log
  readonly emit: Emit
  /** Told when a run comes to a point; for tests. */
  readonly onPoint?: (point: CrashPoint) => void
}
