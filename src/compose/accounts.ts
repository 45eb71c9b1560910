/** Accounts and what belongs to them: keys, stored credentials, and the users who sign in to the console. */
import { createAccountLog } from '../accounts/account-log.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { createCredentials } from '../accounts/create-credentials.ts'
import { createSignIn } from '../accounts/create-sign-in.ts'
import type { Credentials } from '../accounts/credentials.ts'
import { createJoining } from '../accounts/joining.ts'
import { openAccounts } from '../accounts/open-accounts.ts'
import type { OidcOptions } from '../accounts/sign-in.ts'
import { createVault, type Vault } from '../accounts/vault.ts'
import type { Config } from '../config.ts'
import type { ConsoleDependencies } from '../http/console-api/dependencies.ts'
import type { Database } from '../store/port.ts'
import { reportUsage } from '../store/usage-report.ts'
import type { Log } from '../telemetry/log.ts'

export interface AccountParts {
  readonly accounts: Accounts
  readonly vault: Vault
  readonly credentials: Credentials
}

export function createAccountParts(db: Database, secret: string): AccountParts {
  const vault = createVault(secret)
  return { accounts: openAccounts({ db, secret }), vault, credentials: createCredentials({ db, vault }) }
}

/** Dependencies of the console's own routes that concern users: sign-in, members, usage and budgets. */
export function createSignInDependencies(
  { console: { signUp, oidc } }: Config,
  parts: Pick<ConsoleDependencies, 'accounts' | 'budgets' | 'publicUrl'> & {
    readonly db: Database
    readonly secret: string
    readonly log: Log
  },
): Pick<ConsoleDependencies, 'accounts' | 'budgets' | 'signIn' | 'joining' | 'log' | 'usage' | 'signUp' | 'publicUrl'> {
  const { db, accounts, budgets, publicUrl } = parts
  const provider = oidc.issuer === undefined ? undefined : (oidc as OidcOptions)
  const accountLog = createAccountLog(db, Date.now)
  const signIn = createSignIn({ ...parts, oidc: provider, onFailure: accountLog.signInFailed })
  const joining = createJoining({ db, ...accounts, signIn, now: Date.now })
  const usage: ConsoleDependencies['usage'] = (question) => reportUsage(db, question)
  return { accounts, signIn, joining, log: accountLog, usage, budgets, signUp, publicUrl }
}
