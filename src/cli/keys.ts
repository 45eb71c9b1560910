/** `errand keys`: creates, lists and revokes API keys in the data directory of this machine. */
import type { KeyInfo } from '../accounts/keys.ts'
import type { Scope } from '../accounts/scopes.ts'
import { type CliContext, Exit, printable } from './context.ts'
import { type ConfigOption, withAccounts } from './start.ts'
import { table, when } from './table.ts'

export interface CreateKeyOptions extends ConfigOption {
  readonly name: string
  readonly project: string
  readonly account: string
  readonly scope: Scope
  readonly expiresInDays?: number
}

const DAY_MS = 24 * 60 * 60 * 1000

/** Prints only the key on stdout, so that a script can read it; the rest goes to stderr. */
export async function createKey(context: CliContext, options: CreateKeyOptions): Promise<void> {
  const { name, project, account, scope, expiresInDays } = options
  const expiresAt = expiresInDays === undefined ? undefined : Date.now() + expiresInDays * DAY_MS
  const { key, info } = await withAccounts(context, options, (accounts) =>
    accounts.createKey({ name, project, account, scope, expiresAt }),
  )
  context.out.write(`${key}\n`)
  context.err.write(
    `${info.id} for project ${info.projectName} (${info.projectId}). The key is shown only once; store it now.\n`,
  )
}

export async function listKeys(context: CliContext, options: ConfigOption & { readonly all: boolean }): Promise<void> {
  const keys = await withAccounts(context, options, (accounts) => accounts.keys.list())
  const now = Date.now()
  const rows = keys
    .filter((key) => options.all || state(key, now) === 'valid')
    .map((key) => [
      key.id,
      key.name,
      key.projectName,
      `${key.prefix}…`,
      key.scope,
      when(key.createdAt),
      when(key.lastUsedAt),
      state(key, now),
    ])
  context.out.write(
    table(
      ['ID', 'NAME', 'PROJECT', 'KEY', 'SCOPE', 'CREATED (UTC)', 'LAST USED', 'STATE'],
      rows.map((row) => row.map(printable)),
    ),
  )
}

export async function revokeKey(context: CliContext, id: string, options: ConfigOption): Promise<void> {
  const known = await withAccounts(context, options, (accounts) => accounts.keys.revoke(id))
  if (!known)
    throw new Exit(1, `There is no key ${JSON.stringify(id)}. \`${context.command} keys list\` shows the ids.`)
  context.err.write(`${id} is revoked.\n`)
}

function state(key: KeyInfo, now: number): string {
  if (key.revokedAt !== undefined) return 'revoked'
  return key.expiresAt !== undefined && key.expiresAt <= now ? 'expired' : 'valid'
}
