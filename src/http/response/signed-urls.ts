/**
 * Addresses of a run's files that need no key: whoever holds one may read that one file for an hour. The signature is an
 * HMAC over everything that the address names, under a key derived for this purpose alone from the server's secret.
 */

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { withoutEnd } from '../../domain/trim.ts'

const LIFETIME_S = 3600
/** Where a run's files lie: those that it made, and those that it was given. */
export const FILE_PATHS = { output: '/v1beta/files', input: '/v1beta/input-files' } as const
export type FileKind = keyof typeof FILE_PATHS

export interface FileAddress {
  readonly kind: FileKind
  readonly projectId: string
  readonly interactionId: string
  /** The file's name in the interaction. */
  readonly name: string
}

export interface Signer {
  /** An absolute address, valid for an hour from now. */
  sign(file: FileAddress): string
  /** Whether these are a signature of ours for that file, and its time is not over. */
  verify(file: FileAddress, expires: string, signature: string): boolean
}

/**
 * `publicUrl` is how callers reach this server, asked at each signature: a server that chooses its own port learns it
 * late. `secret` is the server's. `clock` gives milliseconds since 1970.
 */
export function createSigner(options: {
  readonly publicUrl: () => string | undefined
  readonly secret: string
  readonly clock?: () => number
}): Signer {
  const key = Buffer.from(hkdfSync('sha256', options.secret, '', 'errand file addresses', 32))
  const nowS = () => Math.floor((options.clock ?? Date.now)() / 1000)

  function signature(file: FileAddress, expires: string): Buffer {
    // JSON keeps the parts apart: no two addresses sign the same text.
    const text = JSON.stringify([file.kind, file.projectId, file.interactionId, file.name, expires])
    return createHmac('sha256', key).update(text).digest()
  }

  return {
    sign(file) {
      const expires = String(nowS() + LIFETIME_S)
      const path = [file.projectId, file.interactionId, ...file.name.split('/')].map(encodeURIComponent).join('/')
      const base = withoutEnd(options.publicUrl() ?? '', '/')
      return `${base}${FILE_PATHS[file.kind]}/${path}?expires=${expires}&signature=${signature(file, expires).toString('base64url')}`
    },
    verify(file, expires, given) {
      // Decoding base64 forgives stray characters and bits; comparing what was written does not.
      const expected = Buffer.from(signature(file, expires).toString('base64url'))
      const actual = Buffer.from(given)
      if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return false
      return /^\d{1,12}$/.test(expires) && Number(expires) > nowS()
    },
  }
}
