/** Whose certificates are trusted: those that Node trusts, and those that the operator adds. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The certificates of the operator's `egress.caFile`, PEM. Throws an Error with a sentence. */
export function readAuthorities(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  try {
    const found = readFileSync(path, 'utf8').match(CERTIFICATE) ?? []
    for (const certificate of found) new X509Certificate(certificate)
    if (found.length > 0) return found.map((certificate) => `${certificate}\n`).join('')
  } catch (error) {
    throw new Error(`egress.caFile, ${path}, can't be read: ${(error as Error).message}.`, { cause: error })
  }
  throw new Error(`egress.caFile, ${path}, has no certificate in it: it must be a PEM file.`)
}

/** PEM certificates; undefined: Node's alone, which it has at hand. */
export function trustedWith(authorities: string | undefined): readonly string[] | undefined {
  return authorities === undefined ? undefined : [...getCACertificates('default'), authorities]
}

/** One PEM text: all that clients in a sandbox are to trust. */
export function trustBundle(...authorities: readonly (string | undefined)[]): string {
  const all = [...getCACertificates('default'), ...authorities.filter((text) => text !== undefined)]
  return all.map((text) => `${text.trim()}\n`).join('')
}
