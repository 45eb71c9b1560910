/** The interface to accounts, projects and keys: identifies callers, and says whether the service is on for them. */
import type { IssuedKey, Keys, NewKey } from './keys.ts'
import type { Links } from './links.ts'
import type { Members } from './members.ts'
import type { Projects } from './projects.ts'
import type { Scope } from './scopes.ts'

/** The project and account that a valid key authenticates. */
export interface Caller {
  readonly keyId: string
  readonly projectId: string
  readonly accountId: string
  /** Whether the account has the experimental setting for this service switched on. */
  readonly enabled: boolean
  readonly scope: Scope
}

export interface Accounts {
  /** Returns undefined for a key that is malformed, unknown, revoked or expired. A malformed key costs no database read. */
  authenticate(key: string): Promise<Caller | undefined>
  /**
   * Issues a key for the project with this name and creates the project if needed. The key's text is returned only here and
   * never stored.
   */
  createKey(options: NewKey & { readonly project: string; readonly account?: string }): Promise<IssuedKey>
  /** A key that only this process accepts, for commands on its data directory. Not stored in the database. */
  temporaryKey(project: string): Promise<string>
  /** The signing secret of the project's webhooks. Undefined if there is no such project. */
  webhookSecret(project: string): Promise<string | undefined>
  getSetting(name: SettingName, account?: string): Promise<boolean>
  setSetting(name: SettingName, on: boolean, account?: string): Promise<void>
  readonly keys: Keys
  readonly projects: Projects
  readonly members: Members
  readonly links: Links
}

/** Switches the service for an account. While it is off, every call with the account's keys is 403. */
export type SettingName = 'experimental.managedAgents'
