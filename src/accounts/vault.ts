/**
 * Encrypts secrets for storage. A sealed text can only be opened with the server's secret, for the owner that it was sealed
 * for: AES-256-GCM with a derived key (HKDF). `owner` is associated data, so a ciphertext that is copied to another record can't
 * be opened there.
 *
 *   sealed = base64url( version 1 · nonce 12 · ciphertext · tag 16 )
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

const CIPHER = 'aes-256-gcm'
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** The record that a sealed text belongs to: `['credential', projectId, id]`. */
export type Owner = readonly string[]

export interface Vault {
  seal(text: string, owner: Owner): string
  /** Throws an Error, which reveals nothing of the content, if the secret or the owner differs or the text was changed. */
  unseal(sealed: string, owner: Owner): string
  /** Keyed digest in hexadecimal: equal for equal texts, and reveals nothing else. */
  digest(text: string): string
}

/** `secret`: the server's. */
export function createVault(secret: string): Vault {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'errand vault', 32))
  const digestKey = Buffer.from(hkdfSync('sha256', secret, '', 'errand digests', 32))

  return {
    seal(text, owner) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(bind(owner))
      const content = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(VERSION), nonce, content, cipher.getAuthTag()]).toString('base64url')
    },
    unseal(sealed, owner) {
      const bytes = Buffer.from(sealed, 'base64url')
      if (bytes[0] !== VERSION || bytes.length < 1 + NONCE_BYTES + TAG_BYTES) throw unreadable()
      const nonce = bytes.subarray(1, 1 + NONCE_BYTES)
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(bind(owner)).setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        const content = decipher.update(bytes.subarray(1 + NONCE_BYTES, -TAG_BYTES))
        return Buffer.concat([content, decipher.final()]).toString('utf8')
      } catch {
        throw unreadable()
      }
    },
    digest: (text) => createHmac('sha256', digestKey).update(text).digest('hex'),
  }
}

/** Associated data. JSON separates the parts, so no two owners have the same bytes. Includes the version. */
function bind(owner: Owner): Buffer {
  return Buffer.from(JSON.stringify([VERSION, ...owner]))
}

function unreadable(): Error {
  return new Error(
    'A stored secret could not be opened: ERRAND_SECRET differs from the one that it was encrypted with.',
  )
}
