/** `errand settings`: shows and changes the experimental settings of an account, in the data directory of this machine. */
import type { SettingName } from '../accounts/accounts.ts'
import { type CliContext, Exit } from './context.ts'
import { type ConfigOption, withAccounts } from './start.ts'

const NAMES: readonly SettingName[] = ['experimental.managedAgents']

export interface SettingsOptions extends ConfigOption {
  readonly account?: string
}

export async function getSettings(context: CliContext, options: SettingsOptions): Promise<void> {
  await withAccounts(context, options, async (accounts) => {
    for (const name of NAMES) {
      context.out.write(`${name} ${(await accounts.getSetting(name, options.account)) ? 'on' : 'off'}\n`)
    }
  })
}

export async function setSetting(
  context: CliContext,
  name: string,
  value: string,
  options: SettingsOptions,
): Promise<void> {
  const known = NAMES.find((candidate) => candidate === name)
  if (!known) throw new Exit(2, `There is no setting ${JSON.stringify(name)}; there is ${NAMES.join(', ')}.`)
  if (value !== 'on' && value !== 'off') throw new Exit(2, `${name} must be on or off, not ${JSON.stringify(value)}.`)
  await withAccounts(context, options, (accounts) => accounts.setSetting(known, value === 'on', options.account))
  context.err.write(
    `${name} is ${value}.${value === 'off' ? ' Every call with a key of the account now fails with 403.' : ''}\n`,
  )
}
