/** Webhooks, signed as Standard Webhooks has it (https://www.standardwebhooks.com). */
import { WebhookSignatureError } from './errors.ts'
import type { WebhookEvent } from './generated/types.ts'

export interface ReceivedWebhook {
  /** The body as it came, before any JSON parser. */
  readonly payload: string | Uint8Array
  /** Of the request: a `Headers`, or an object with names in lower case, as Node has them. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** Of the project: `errand webhooks secret --project NAME` shows it. */
  readonly secret: string
  /** How old a webhook may be, seconds; default 300. */
  readonly toleranceS?: number
}

/** The event, once its signature is proved. Throws WebhookSignatureError. The same event may come more than once. */
export async function verifyWebhook({
  payload,
  headers,
  secret,
  toleranceS = 300,
}: ReceivedWebhook): Promise<WebhookEvent> {
  const header = (name: string) => String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? '')
  const [id, timestamp, signatures] = [header('webhook-id'), header('webhook-timestamp'), header('webhook-signature')]
  if (!id || !timestamp || !signatures) throw new WebhookSignatureError('The webhook is not signed.')
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceS)) {
    throw new WebhookSignatureError('The webhook is too old, or from the future: an old one, played again?')
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
  throw new WebhookSignatureError('The webhook’s signature is wrong: is it the secret of this project?')
}

function importKey(secret: string) {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (!bytes) throw new WebhookSignatureError('The secret is not one of a project: they begin with whsec_.')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
