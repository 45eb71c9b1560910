/** `errand webhooks`: prints the secret that signs the webhooks of a project. */

import { type CliContext, Exit } from './context.ts'
import { type ConfigOption, withAccounts } from './start.ts'

/** Prints only the secret on stdout, so that a script can read it. */
export async function showWebhookSecret(
  context: CliContext,
  { project, ...options }: ConfigOption & { readonly project: string },
): Promise<void> {
  const secret = await withAccounts(context, options, (accounts) => accounts.webhookSecret(project))
  if (secret === undefined) {
    throw new Exit(
      1,
      `There is no project ${JSON.stringify(project)}. \`${context.command} keys create\` makes one with its first key.`,
    )
  }
  context.out.write(`${secret}\n`)
}
