/** Accounts, projects and keys: who calls, and whether the service is switched on for them. */
import type { IssuedKey, Keys, NewKey } from './keys.ts'
import type { Links } from './links.ts'
import type { Members } from './members.ts'
import type { Projects } from './projects.ts'
import type { Scope } from './scopes.ts'

/** Who a valid key speaks for. */
export interface Caller {
  readonly keyId: string
  readonly projectId: string
  readonly accountId: string
  /** The account's experimental setting for this service (spec.md 5, rule 2). */
  readonly enabled: boolean
  readonly scope: Scope
}

export interface Accounts {
  /** Undefined for a key that is malformed, unknown, revoked or expired; a malformed one costs no look-up. */
  authenticate(key: string): Promise<Caller | undefined>
  /**
   * Issues a key under the project of that name, which is made where there is none. The key's text is returned this once
   * and never stored.
   */
  createKey(options: NewKey & { readonly project: string; readonly account?: string }): Promise<IssuedKey>
  /** A key that this process alone accepts, until it ends: for commands on its data directory. Not stored in the database. */
  temporaryKey(project: string): Promise<string>
  /** What this project's webhooks are signed with; undefined where there is none by that name. */
  webhookSecret(project: string): Promise<string | undefined>
  getSetting(name: SettingName, account?: string): Promise<boolean>
  setSetting(name: SettingName, on: boolean, account?: string): Promise<void>
  readonly keys: Keys
  readonly projects: Projects
  readonly members: Members
  readonly links: Links
}

/** Off: every call of the account's keys answers 403. */
export type SettingName = 'experimental.managedAgents'
