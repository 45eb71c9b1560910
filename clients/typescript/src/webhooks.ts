/** Verification of webhooks, which are signed as in Standard Webhooks (https://www.standardwebhooks.com). */
import { WebhookSignatureError } from './errors.ts'
import type { WebhookEvent } from './generated/types.ts'

export interface ReceivedWebhook {
  /** The body as received, before JSON parsing. */
  readonly payload: string | Uint8Array
  /** Headers of the request: a `Headers`, or an object with lower-case names as in Node. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** Webhook secret of the project; `errand webhooks secret --project NAME` prints it. */
  readonly secret: string
  /** Maximum age of a webhook in seconds; default 300. */
  readonly toleranceS?: number
}

/** Verifies the signature and returns the event. Throws WebhookSignatureError. Events are delivered at least once. */
export async function verifyWebhook({
  payload,
  headers,
  secret,
  toleranceS = 300,
}: ReceivedWebhook): Promise<WebhookEvent> {
  const header = (name: string) => String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? '')
  const [id, timestamp, signatures] = [header('webhook-id'), header('webhook-timestamp'), header('webhook-signature')]
  if (!id || !timestamp || !signatures) throw new WebhookSignatureError('The webhook has no signature headers.')
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceS)) {
    throw new WebhookSignatureError('The timestamp of the webhook is too old or in the future. It may be a replay.')
  }
  const body = typeof payload === 'string' ? payload : new TextDecoder().decode(payload)
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const key = await importKey(secret)
  for (const entry of signatures.split(' ')) {
    const [version, text = ''] = entry.split(',')
    const signature = version === 'v1' ? fromBase64(text) : undefined
    if (signature && (await crypto.subtle.verify('HMAC', key, signature, signed)))
      return JSON.parse(body) as WebhookEvent
  }
  throw new WebhookSignatureError(
    'The signature of the webhook is wrong. Check that the secret is that of this project.',
  )
}

function importKey(secret: string) {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (!bytes) throw new WebhookSignatureError('The secret is not a webhook secret. Webhook secrets begin with whsec_.')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
