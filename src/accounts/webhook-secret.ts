/** What a project's webhooks are signed with: derived from the server's secret, so that it is stored nowhere and the same on every node. */
import { hkdfSync } from 'node:crypto'

/** As Standard Webhooks writes it: `whsec_` and 32 bytes in base64. */
export function webhookSecret(secret: string, projectId: string): string {
  const key = Buffer.from(hkdfSync('sha256', secret, '', `errand webhook signatures ${projectId}`, 32))
  return `whsec_${key.toString('base64')}`
}
