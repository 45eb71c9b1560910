/** Trusted certificate authorities: those of Node, and those that the operator adds. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Reads the PEM certificates of the operator's `egress.caFile`. Throws an Error with a sentence for the operator. */
export function readAuthorities(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  try {
    const found = readFileSync(path, 'utf8').match(CERTIFICATE) ?? []
    for (const certificate of found) new X509Certificate(certificate)
    if (found.length > 0) return found.map((certificate) => `${certificate}\n`).join('')
  } catch (error) {
    throw new Error(`egress.caFile, ${path}, can't be read: ${(error as Error).message}.`, { cause: error })
  }
  throw new Error(`egress.caFile, ${path}, has no certificate. It must be a PEM file.`)
}

/** The PEM certificates to trust; undefined for Node's default, which is faster. */
export function trustedWith(authorities: string | undefined): readonly string[] | undefined {
  return authorities === undefined ? undefined : [...getCACertificates('default'), authorities]
}

/** All certificates that clients in a sandbox should trust, as one PEM text. */
export function trustBundle(...authorities: readonly (string | undefined)[]): string {
  const all = [...getCACertificates('default'), ...authorities.filter((text) => text !== undefined)]
  return all.map((text) => `${text.trim()}\n`).join('')
}
