/** Signing secrets of webhooks. Derived from the server's secret: not stored, and the same on every node. */
import { hkdfSync } from 'node:crypto'

/** The project's signing secret in the format of Standard Webhooks: `whsec_` and 32 bytes in base64. */
export function webhookSecret(secret: string, projectId: string): string {
  const key = Buffer.from(hkdfSync('sha256', secret, '', `errand webhook signatures ${projectId}`, 32))
  return `whsec_${key.toString('base64')}`
}
