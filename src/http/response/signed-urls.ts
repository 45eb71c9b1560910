/**
 * Signed download URLs for a run's files. Anyone who has one can read that file for an hour, without a key. The signature is an
 * HMAC over all parts of the URL, with a key that is derived from the server's secret for this purpose only.
 */

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { withoutEnd } from '../../domain/trim.ts'

const LIFETIME_S = 3600
/** Paths of output files and input files. */
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
  /** Returns an absolute URL that is valid for one hour. */
  sign(file: FileAddress): string
  /** Whether the signature is valid for the file and has not expired. */
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
