/**
 * Types of the tables for Kysely. Times are milliseconds since the Unix epoch. JSON is stored in text columns, so that the same
 * SQL works on SQLite and Postgres.
 */

export interface AccountsTable {
  id: string
  name: string
  created_at: number
}

export interface SettingsTable {
  account_id: string
  name: string
  value: string
}

export interface ProjectsTable {
  id: string
  account_id: string
  name: string
  created_at: number
}

export interface KeysTable {
  id: string
  project_id: string
  name: string
  prefix: string
  hash: string
  /** Permissions: `all`, `invoke` or `read`. */
  scope: string
  created_at: number
  last_used_at: number | null
  expires_at: number | null
  revoked_at: number | null
}

export interface AgentsTable {
  project_id: string
  id: string
  version: number
  config: string
  /** The configured model, for the list's filter. Null if the agent uses the default model. */
  model: string | null
  created_at: number
  updated_at: number
}

export interface AgentVersionsTable {
  project_id: string
  agent_id: string
  version: number
  config: string
  created_at: number
}

/** Labels of agents and interactions, one row a label, for the filters of the lists. */
export interface LabelsTable {
  project_id: string
  kind: 'agent' | 'interaction'
  object_id: string
  key: string
  value: string
}

/** The row of an interaction. Small, because each commit of its log rewrites it. */
export interface InteractionsTable {
  id: string
  project_id: string
  key_id: string
  agent_id: string | null
  /** The requested model. */
  model: string | null
  status: string
  stage: string
  created_at: number
  /** Time of the first claim by a worker. */
  started_at: number | null
  ended_at: number | null
  /** Fencing token of the writer. Rises with each claim and with a cancellation. */
  epoch: number
  /** Claims so far, without those that were requeued as planned. Limited by MAX_ATTEMPTS. */
  attempts: number
  lease_owner: string | null
  /** Database clock. The interaction may be claimed if this is not in the future. */
  lease_until: number
  last_seq: number
  stop_reason: string | null
  error: string | null
  usage: string | null
  output_files: string | null
}

/** The resolved spec of an interaction. Written once; read when a worker claims it or a caller reads it. */
export interface SpecsTable {
  interaction_id: string
  spec: string
  labels: string
}

export interface EventsTable {
  interaction_id: string
  seq: number
  type: string
  data: string
  at: number
}

/** The model's messages, to continue after a crash. `at_seq`: number of the last event when the turn was stored. */
export interface TurnsTable {
  interaction_id: string
  turn: number
  message: string
  finish: string
  tokens: string
  at_seq: number
  /** The model that answered, if it is not the requested one. */
  model: string | null
  /** Billionths of a US dollar. */
  cost_nanos: number | null
  /** JSON list of messages that Errand itself sent the model before the turn; null if none. */
  asked: string | null
}

export interface IdempotencyTable {
  project_id: string
  key: string
  fingerprint: string
  interaction_id: string
  created_at: number
}

/** Media that a tool result showed the model beside text, by step. The bytes are in the file store. */
export interface ResultMediaTable {
  interaction_id: string
  step: number
  media: string
}

/** The beginning of a run's model requests, as JSON. `at_seq`: number of the last event before it applied. */
export interface FramesTable {
  interaction_id: string
  at_seq: number
  frame: string
}

/** External hosts that were contacted on a run's behalf. */
export interface AuditTable {
  interaction_id: string
  /** Empty in rows from before migration 0007. */
  id: string
  at: number
  kind: string
  host: string
  port: number
  outcome: string
  /** Number of connections in this entry. */
  count: number
}

/** Decisions on tool calls that need approval. */
export interface ApprovalsTable {
  interaction_id: string
  /** The step of the tool call. */
  step: number
  /** 1 or 0. */
  approve: number
  reason: string | null
  key_id: string
  at: number
}

/** Secrets for runs, which callers refer to by id. */
export interface CredentialsTable {
  project_id: string
  id: string
  name: string | null
  type: string
  /** JSON list of hosts; null allows any host. */
  allowed_hosts: string | null
  /** Encrypted by the vault and bound to project and id. */
  sealed: string
  /** Rises with each change. A token refresh is stored only over the version that it was made from. */
  version: number
  created_at: number
  updated_at: number
  last_used_at: number | null
}

/** Names of skills by owner. The owner '' is the server. */
export interface SkillsTable {
  project_id: string
  name: string
  /** Newest version; 0 if none is left. */
  newest: number
  /** Highest version number ever used. Numbers are never reused. */
  last_version: number
  created_at: number
}

export interface SkillVersionsTable {
  project_id: string
  name: string
  version: number
  digest: string
  created_at: number
}

/** Contents of skill versions. Versions with the same content share a row. */
export interface SkillContentsTable {
  digest: string
  /** Owner of its bytes in the file store. */
  blob: string
  /** JSON of the front matter. */
  meta: string
  /** JSON list of the files, in the order of their bytes. */
  files: string
  size: number
  file_count: number
  /** Time since which no version refers to it; null while one does. */
  released_at: number | null
}

/** Webhooks, called when their interaction ends. */
export interface WebhooksTable {
  interaction_id: string
  project_id: string
  /** Sealed. */
  url: string
  revision: string
  state: string
  /** Attempts that were started. */
  attempts: number
  /** Database clock. The webhook is due if this is not in the future and the interaction is over. */
  next_at: number
}

export interface WebhookDeliveriesTable {
  interaction_id: string
  attempt: number
  at: number
  duration_ms: number
  status: number | null
  error: string | null
}

/** Rate-limit windows, one row for each project and class of calls. Only on Postgres. */
export interface RateWindowsTable {
  project_id: string
  class: string
  /** Database clock. */
  ends_at: number
  used: number
  /** Calls that the last count admitted. */
  granted: number
}

/** Records of removed interactions. They outlive the interaction. */
export interface RemovalsTable {
  interaction_id: string
  project_id: string
  at: number
  /** Id of a key, or `retention`. */
  removed_by: string
  created_at: number
  events: number
  files: number
  file_bytes: number
}

/** Usage of one day, project, agent, model, key and latency bucket (usage.ts). */
export interface UsageTable {
  project_id: string
  /** UTC day, as `2026-11-21`. */
  day: string
  /** Empty if there was no agent. */
  agent_id: string
  model: string
  key_id: string
  latency_bucket: number
  runs: number
  failed: number
  cancelled: number
  input_tokens: number
  output_tokens: number
  /** Billionths of a US dollar. */
  cost_nanos: number
}

/** Usage of single ended runs, until it is moved to `usage`. */
export interface UsageEndsTable extends UsageTable {
  interaction_id: string
}

export interface BudgetsTable {
  project_id: string
  /** Billionths of a US dollar. */
  monthly_nanos: number | string
  /** JSON list of percentages. */
  alert_at: string
  /** 1 or 0. */
  hard_stop: number
}

/** Budget alerts that were sent. */
export interface BudgetAlertsTable {
  project_id: string
  /** UTC month, as `2026-11`. */
  month: string
  percent: number
}

/** Processes on this database. Only on Postgres. */
export interface NodesTable {
  id: string
  role: string
  version: string
  started_at: number
  /** Database clock. */
  seen_at: number
  /** JSON: properties of its sandboxes. */
  facts: string
  /** JSON: recent health of the models, by name. */
  models: string
}

/** Users of the console. This table and the next three have the shape of the sign-in library (src/accounts/sign-in-store.ts). */
export interface UsersTable {
  id: string
  name: string
  email: string
  email_verified: number
  image: string | null
  created_at: number
  updated_at: number
}

export interface SessionsTable {
  id: string
  user_id: string
  token: string
  ip_address: string | null
  user_agent: string | null
  expires_at: number
  created_at: number
  /** Time of last use, to the minute. */
  updated_at: number
}

/** Sign-in methods of a user: a password, or an OpenID Connect provider. */
export interface IdentitiesTable {
  id: string
  user_id: string
  provider_id: string
  /** The provider's id of the user. */
  account_id: string
  access_token: string | null
  refresh_token: string | null
  id_token: string | null
  access_token_expires_at: number | null
  refresh_token_expires_at: number | null
  scope: string | null
  /** Hashed. */
  password: string | null
  created_at: number
  updated_at: number
}

/** Provider sign-ins that are under way. */
export interface VerificationsTable {
  id: string
  identifier: string
  value: string
  expires_at: number
  created_at: number
  updated_at: number
}

/** Failed sign-ins, by IP address and by user. */
export interface SignInAttemptsTable {
  who: string
  count: number
  until: number
}

export interface MembersTable {
  account_id: string
  user_id: string
  role: string
  created_at: number
}

/** One-time links that are still valid. */
export interface LinksTable {
  id: string
  hash: string
  kind: string
  account_id: string | null
  role: string | null
  user_id: string | null
  created_at: number
  expires_at: number
}

/** The account log, for its owners. */
export interface AccountEventsTable {
  id: string
  account_id: string
  at: number
  /** A user's id; null for the operator. */
  actor: string | null
  action: string
  target: string | null
  details: string
}

export interface Tables {
  nodes: NodesTable
  users: UsersTable
  sessions: SessionsTable
  identities: IdentitiesTable
  verifications: VerificationsTable
  sign_in_attempts: SignInAttemptsTable
  members: MembersTable
  links: LinksTable
  account_events: AccountEventsTable
  accounts: AccountsTable
  settings: SettingsTable
  projects: ProjectsTable
  keys: KeysTable
  agents: AgentsTable
  agent_versions: AgentVersionsTable
  labels: LabelsTable
  interactions: InteractionsTable
  specs: SpecsTable
  events: EventsTable
  turns: TurnsTable
  idempotency: IdempotencyTable
  audit: AuditTable
  credentials: CredentialsTable
  approvals: ApprovalsTable
  result_media: ResultMediaTable
  frames: FramesTable
  skills: SkillsTable
  skill_versions: SkillVersionsTable
  skill_contents: SkillContentsTable
  webhooks: WebhooksTable
  webhook_deliveries: WebhookDeliveriesTable
  rate_windows: RateWindowsTable
  removals: RemovalsTable
  usage: UsageTable
  usage_ends: UsageEndsTable
  budgets: BudgetsTable
  budget_alerts: BudgetAlertsTable
}
