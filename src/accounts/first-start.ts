/**
 * The first key and the first owner's link, which the first start shows once. If several processes start on an empty database,
 * each claims the key or link in the transaction that creates it, and only one claim succeeds.
 */
import type { Accounts } from './accounts.ts'
import { pathOfLink } from './links.ts'
import { DEFAULT_ACCOUNT } from './projects.ts'

/** Creates the first key. Undefined if there is a key, or another process shows it. */
export async function makeFirstKey({ keys, projects }: Accounts): Promise<string | undefined> {
  if ((await keys.list()).length > 0) return undefined
  const account = await projects.accountId(DEFAULT_ACCOUNT)
  const project = await projects.ensure(account, 'default')
  const claim = projects.claim(account, 'first.key', undefined, 'made')
  return (await keys.issueOnce(project, { name: 'first key' }, claim))?.key
}

export interface Welcome {
  /** The link for the first owner. Undefined if another running process has shown it. */
  readonly path: string | undefined
}

/**
 * Creates the first owner's link. Undefined if there is an owner. `self`: this process. If another running process has shown a
 * link, that one is used.
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
