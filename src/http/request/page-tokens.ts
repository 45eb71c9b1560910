/**
 * Page tokens, opaque to callers. A token contains the position where its page ended and a digest of its list, so that a token
 * from another list, or with other filters, is refused.
 */
import { createHash } from 'node:crypto'
import { wrongField } from './fields.ts'

const DIGEST_CHARS = 12

/** Everything that identifies a list: its path, filters and order. */
export type ListIdentity = Readonly<Record<string, unknown>>

export function writePageToken(list: ListIdentity, after: string | undefined): string | undefined {
  if (after === undefined) return undefined
  return Buffer.from(JSON.stringify([digest(list), after])).toString('base64url')
}

/** The position where the previous page ended. Throws ErrandError `invalid_request`. */
export function readPageToken(list: ListIdentity, token: string | undefined): string | undefined {
  if (token === undefined) return undefined
  const [ofList, after] = parse(token)
  if (typeof ofList !== 'string' || typeof after !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(after)) {
    throw wrongField('pageToken', 'is not a page token of this server; take `nextPageToken` as it came')
  }
  if (ofList !== digest(list)) {
    throw wrongField('pageToken', 'belongs to another list: keep the filters and the order of the first page')
  }
  return after
}

function parse(token: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    return Array.isArray(value) && value.length === 2 ? value : []
  } catch {
    return []
  }
}

function digest(list: ListIdentity): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, DIGEST_CHARS)
}
