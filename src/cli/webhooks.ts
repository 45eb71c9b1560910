/** `errand webhooks`: what the webhooks of a project are signed with. */
import { type ConfigOption, withAccounts } from './start.ts'
import { Exit, type Surroundings } from './surroundings.ts'

/** The secret alone on stdout, so that a script can take it. */
export async function showWebhookSecret(
  around: Surroundings,
  { project, ...options }: ConfigOption & { readonly project: string },
): Promise<void> {
  const secret = await withAccounts(around, options, (accounts) => accounts.webhookSecret(project))
  if (secret === undefined) {
    throw new Exit(
      1,
      `There is no project ${JSON.stringify(project)}. \`${around.command} keys create\` makes one with its first key.`,
    )
  }
  around.out.write(`${secret}\n`)
}
