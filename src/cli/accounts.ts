/** `errand accounts` and `errand console`: accounts, and one-time links for their users. */
import { pathOfLink } from '../accounts/links.ts'
import { type CliContext, Exit, printable } from './context.ts'
import { type ConfigOption, loadConfig, withAccounts } from './start.ts'
import { table, when } from './table.ts'

export async function createAccount(context: CliContext, name: string, options: ConfigOption): Promise<void> {
  const id = await withAccounts(context, options, (accounts) => accounts.projects.createAccount(name))
  context.out.write(`${id}\n`)
  context.err.write(
    `The service is off in this account. Switch it on with \`errand settings set experimental.managedAgents on --account ${name}\`, ` +
      `or let an owner do it (\`errand console link --account ${name}\`).\n`,
  )
}

export async function listAccounts(context: CliContext, options: ConfigOption): Promise<void> {
  const accounts = await withAccounts(context, options, ({ projects }) => projects.accounts())
  const rows = accounts.map(({ id, name, createdAt, enabled }) => [id, name, when(createdAt), enabled ? 'on' : 'off'])
  context.out.write(
    table(
      ['ID', 'NAME', 'CREATED (UTC)', 'SERVICE'],
      rows.map((row) => row.map(printable)),
    ),
  )
}

export interface LinkOptions extends ConfigOption {
  readonly account: string
  readonly resetPassword?: string
}

/** Prints only the link on stdout. */
export async function consoleLink(context: CliContext, options: LinkOptions): Promise<void> {
  const path = await withAccounts(context, options, async ({ links, members, projects }) => {
    if (options.resetPassword === undefined) {
      const accountId = await projects.accountId(options.account)
      return pathOfLink('welcome', (await links.create({ kind: 'welcome', accountId, role: 'owner' })).token)
    }
    const userId = await members.userOf(options.resetPassword)
    if (userId === undefined) throw new Exit(1, `There is no user ${JSON.stringify(options.resetPassword)}.`)
    return pathOfLink('reset', (await links.create({ kind: 'reset', userId })).token)
  })
  const { publicUrl, tls, host, port } = loadConfig(context, options)
  context.out.write(
    `${publicUrl ?? `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`}${path}\n`,
  )
  context.err.write('The link works once and expires in 24 hours. Do not share it.\n')
}
