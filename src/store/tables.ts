/**
 * The tables, as Kysely sees them. Times are milliseconds since 1970; JSON stands in text columns, so that one text of
 * SQL serves SQLite and Postgres.
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
  /** What it may do: `all`, `invoke`, `read`. */
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
  /** The configured model, for the list's filter; null where the agent takes the default. */
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

/** Labels of agents and interactions, one row each, for the lists' filters. */
export interface LabelsTable {
  project_id: string
  kind: 'agent' | 'interaction'
  object_id: string
  key: string
  value: string
}

/** The hot row of an interaction: small, because every commit of its log rewrites it. */
export interface InteractionsTable {
  id: string
  project_id: string
  key_id: string
  agent_id: string | null
  /** That was asked for. */
  model: string | null
  status: string
  stage: string
  created_at: number
  /** When a worker first took it. */
  started_at: number | null
  ended_at: number | null
  /** The writer's fence: rises with each claim and with a cancellation. */
  epoch: number
  /** Claims so far that did not end in a hand-over: the poison limit counts them. */
  attempts: number
  lease_owner: string | null
  /** Database clock; at or before now: free to be claimed. */
  lease_until: number
  last_seq: number
  stop_reason: string | null
  error: string | null
  usage: string | null
  output_files: string | null
}

/** What an interaction runs with: written once, read when it is taken up or shown. */
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

/** The model's own messages, for going on after a crash. `at_seq`: the log's length when the turn was written. */
export interface TurnsTable {
  interaction_id: string
  turn: number
  message: string
  finish: string
  tokens: string
  at_seq: number
  /** Which model said it, where that is not the one that was asked for. */
  model: string | null
  /** Billionths of a US dollar. */
  cost_nanos: number | null
  /** JSON list of user messages, or null: what Errand said to the model before the turn. */
  asked: string | null
}

export interface IdempotencyTable {
  project_id: string
  key: string
  fingerprint: string
  interaction_id: string
  created_at: number
}

/** What a tool result showed the model beside its text, under the result's step: where the bytes lie in the file store. */
export interface ResultMediaTable {
  interaction_id: string
  step: number
  media: string
}

/** Hosts outside that were turned to on a run's behalf. */
export interface AuditTable {
  interaction_id: string
  /** Empty in rows of before there were any. */
  id: string
  at: number
  kind: string
  host: string
  port: number
  outcome: string
  /** Contacts that the row stands for. */
  count: number
}

/** What people decided about tool calls that wait for approval. */
export interface ApprovalsTable {
  interaction_id: string
  /** Of the tool call. */
  step: number
  /** 1 or 0. */
  approve: number
  reason: string | null
  key_id: string
  at: number
}

/** Secrets that runs use and callers refer to by id. */
export interface CredentialsTable {
  project_id: string
  id: string
  name: string | null
  type: string
  /** JSON list; null: any host. */
  allowed_hosts: string | null
  /** Encrypted by the vault, bound to project and id. */
  sealed: string
  /** Rises with each change: a renewal is written only over what it was made from. */
  version: number
  created_at: number
  updated_at: number
  last_used_at: number | null
}

/** A name that an owner gave skills; the owner '' is the server. */
export interface SkillsTable {
  project_id: string
  name: string
  /** 0: no version is left. */
  newest: number
  /** Numbers are never given out twice. */
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

/** What versions hold, one row for the same content wherever it came from. */
export interface SkillContentsTable {
  digest: string
  /** The owner of its bytes in the file store. */
  blob: string
  /** JSON: what the front matter says. */
  meta: string
  /** JSON: the files in the order of their bytes. */
  files: string
  size: number
  file_count: number
  /** Since when no version names it; null while one does. */
  released_at: number | null
}

/** Where the end of an interaction is told. */
export interface WebhooksTable {
  interaction_id: string
  project_id: string
  /** Sealed. */
  url: string
  revision: string
  state: string
  /** Those that were begun. */
  attempts: number
  /** Database clock; at or before now, with the interaction over: due. */
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

/** How often a project called, a row a class of calls; on Postgres alone. */
export interface RateWindowsTable {
  project_id: string
  class: string
  /** Database clock. */
  ends_at: number
  used: number
  /** Of the calls that the last count was for. */
  granted: number
}

/** What was removed; the row outlives the interaction. */
export interface RemovalsTable {
  interaction_id: string
  project_id: string
  at: number
  /** A key's id, or `retention`. */
  removed_by: string
  created_at: number
  events: number
  files: number
  file_bytes: number
}

/** What a day's runs of one project, agent, model and key used that took about as long (usage.ts). */
export interface UsageTable {
  project_id: string
  /** UTC: `2026-11-21`. */
  day: string
  /** Empty: none. */
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

/** The same of one end each, until they are added to that. */
export interface UsageEndsTable extends UsageTable {
  interaction_id: string
}

export interface BudgetsTable {
  project_id: string
  /** Billionths of a US dollar. */
  monthly_nanos: number | string
  /** JSON list of percents. */
  alert_at: string
  /** 1 or 0. */
  hard_stop: number
}

/** At which parts of a month's budget somebody was told. */
export interface BudgetAlertsTable {
  project_id: string
  /** `2026-11` */
  month: string
  percent: number
}

/** A process on this database; on Postgres alone. */
export interface NodesTable {
  id: string
  role: string
  version: string
  started_at: number
  /** Database clock. */
  seen_at: number
  /** JSON: what its sandboxes are. */
  facts: string
  /** JSON: how the models did lately, by their names. */
  models: string
}

/** People who sign in to the console. These four have the shape of the sign-in library (src/accounts/sign-in-store.ts). */
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
  /** When it was used last, by the minute. */
  updated_at: number
}

/** How a user signs in: a password, or an OpenID Connect provider. */
export interface IdentitiesTable {
  id: string
  user_id: string
  provider_id: string
  /** The provider's name for the user. */
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

/** Sign-ins by a provider that are under way. */
export interface VerificationsTable {
  id: string
  identifier: string
  value: string
  expires_at: number
  created_at: number
  updated_at: number
}

/** Failed sign-ins, by address and by account. */
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

/** One-time links that are still good. */
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

/** What was done in an account, for its owners. */
export interface AccountEventsTable {
  id: string
  account_id: string
  at: number
  /** A user; null: whoever runs this server. */
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
