/**
 * What the first start of all shows, once: a key, and the link that makes an owner. Several processes may start at once on an
 * empty database: each claims what it is about to show in the transaction that makes it, and one claim stands.
 */
import type { Accounts } from './accounts.ts'
import { pathOfLink } from './links.ts'
import { DEFAULT_ACCOUNT } from './projects.ts'

/** Undefined where there is a key already, or another process shows it. */
export async function makeFirstKey({ keys, projects }: Accounts): Promise<string | undefined> {
  if ((await keys.list()).length > 0) return undefined
  const account = await projects.accountId(DEFAULT_ACCOUNT)
  const project = await projects.ensure(account, 'default')
  const claim = projects.claim(account, 'first.key', undefined, 'made')
  return (await keys.issueOnce(project, { name: 'first key' }, claim))?.key
}

export interface Welcome {
  /** Where the first owner comes in; undefined where another process that lives has shown it. */
  readonly path: string | undefined
}

/**
 * Undefined where there is an owner. `self`: this process; where another that lives has shown a link, that is the one to use.
 */
export async function makeWelcome(
  { members, links, projects }: Accounts,
  self: string,
  lives: (process: string) => Promise<boolean>,
): Promise<Welcome | undefined> {
  if (await members.anyOwner()) return undefined
  const accountId = await projects.accountId(DEFAULT_ACCOUNT)
  const shownBy = await projects.claimed(accountId, 'first.link')
  if (shownBy !== undefined && shownBy !== self && (await lives(shownBy))) return { path: undefined }
  const claim = projects.claim(accountId, 'first.link', shownBy, self)
  const made = await links.createOnce({ kind: 'welcome', accountId, role: 'owner' }, claim)
  return { path: made && pathOfLink('welcome', made.token) }
}
