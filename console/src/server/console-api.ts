/** The console's own API: session, accounts, members, keys, usage. Authenticated by the session cookie. */
import { Problem } from './problem.ts'

export type Role = 'owner' | 'developer' | 'viewer'

export interface Project {
  readonly id: string
  readonly name: string
  readonly createTime: string
}

export interface Account {
  readonly id: string
  readonly name: string
  readonly role: Role
  /** Managed agents are enabled. */
  readonly enabled: boolean
  readonly projects: readonly Project[]
}

export interface Me {
  readonly user: { readonly id: string; readonly name: string; readonly email: string }
  readonly sessionId: string
  readonly accounts: readonly Account[]
}

export interface SignInOptions {
  readonly signUp: boolean
  readonly oidc: { readonly name: string } | null
  /** The server has an owner. */
  readonly owned: boolean
}

export interface Link {
  readonly kind: 'welcome' | 'invite' | 'reset'
  readonly account: { readonly name: string } | null
  readonly role: Role | null
  readonly email: string | null
  readonly expireTime: string
}

export type Scope = 'all' | 'invoke' | 'read'

export interface Key {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly scope: Scope
  readonly createTime: string
  readonly lastUsedTime: string | null
  readonly expireTime: string | null
  readonly revokeTime: string | null
  readonly state: 'valid' | 'expired' | 'revoked'
}

export interface Member {
  readonly userId: string
  readonly name: string
  readonly email: string
  readonly role: Role
  readonly joinTime: string
}

export interface Invite {
  readonly id: string
  readonly role: Role
  readonly createTime: string
  readonly expireTime: string
}

export interface Session {
  readonly id: string
  readonly current: boolean
  readonly createTime: string
  readonly lastUsedTime: string
  readonly ipAddress: string | null
  readonly userAgent: string | null
}

export interface AuditEntry {
  readonly id: string
  readonly time: string
  readonly actor: { readonly userId: string; readonly email: string } | null
  readonly action: string
  readonly target: string | null
  readonly details: Readonly<Record<string, string>>
}

export interface UsageFigures {
  readonly runs: number
  readonly failed: number
  readonly cancelled: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cost: { readonly amount: string; readonly currency: string }
  readonly latencyMs: { readonly p50: number | null; readonly p95: number | null; readonly p99: number | null }
}

export interface UsageRow extends UsageFigures {
  readonly day?: string
  readonly projectId?: string
  readonly projectName?: string | null
  readonly agentId?: string | null
  readonly model?: string | null
  readonly keyId?: string
  readonly keyName?: string | null
}

export interface UsageReport {
  readonly rows: readonly UsageRow[]
  readonly total: UsageFigures
}

export interface Webhook {
  readonly interactionId: string
  readonly host: string
  readonly state: 'pending' | 'delivered' | 'gone' | 'failed'
  readonly attempts: number
  readonly nextAttemptTime: string | null
  readonly last: {
    readonly time: string
    readonly durationMs: number
    readonly status: number | null
    readonly error: string | null
  } | null
}

export interface McpServerUse {
  readonly name: string
  readonly url: string | null
  readonly kind: 'address' | 'program' | 'unknown'
  /** Registered by the operator. */
  readonly registered: boolean
  readonly credentialId: string | null
  readonly agents: readonly { readonly id: string; readonly displayName: string | null }[]
}

export interface McpCheck {
  readonly answers: boolean
  readonly tools: readonly { readonly name: string; readonly description: string }[]
  readonly problems: readonly string[]
  readonly durationMs: number
}

export interface Model {
  readonly name: string
  readonly provider: string
  readonly source: string
  readonly demo: boolean
  readonly vision: boolean
  readonly documents: boolean
  readonly searches: boolean
  /** US dollars per million tokens. */
  readonly price: { readonly input: number; readonly output: number } | null
  readonly fallbacks: readonly string[]
  readonly unavailable: string | null
  readonly health: readonly {
    readonly node: string | null
    readonly state: 'untried' | 'up' | 'failing' | 'resting'
    readonly failures: number
    readonly lastFailure: { readonly message: string; readonly time: string } | null
    readonly restsUntil: string | null
  }[]
}

export interface Budget {
  /** US dollars; null: no budget. */
  readonly monthlyCost: string | null
  /** Percents. */
  readonly alertAt: readonly number[]
  readonly hardStop: boolean
  readonly spent: { readonly amount: string; readonly currency: string }
  readonly state: 'none' | 'ok' | 'alert' | 'exceeded'
}

/** Calls the console API. `path`: below /console, such as `/api/me`. Throws Problem unless the call succeeds. */
export async function ask<T>(
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
): Promise<T> {
  const response = await fetch(`/console${path}`, {
    method,
    cache: 'no-store',
    credentials: 'same-origin',
    headers: { 'X-Errand-Console': '1', ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
  })
  const answer = await response.json().catch(() => undefined)
  if (!response.ok) throw Problem.of(answer, response.status)
  return answer as T
}

export const account = (id: string) => `/api/accounts/${encodeURIComponent(id)}`
export const project = (id: string) => `/api/projects/${encodeURIComponent(id)}`
