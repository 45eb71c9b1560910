/** Parses `s3://bucket/key` and `gs://bucket/object` like the stores' own tools: the key is not decoded. */
import type { Allowed } from './port.ts'

export interface ObjectAddress {
  readonly scheme: 's3' | 'gs'
  readonly bucket: string
  readonly key: string
}

const BUCKET = /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/
const MAX_KEY_BYTES = 1024

/** The parsed address, or the fault as words that follow its name. */
export function parseObjectAddress(text: string): ObjectAddress | string {
  const [, scheme = '', bucket = '', key = ''] = /^(s3|gs):\/\/([^/]*)\/?(.*)$/is.exec(text) ?? []
  if (!BUCKET.test(bucket)) return `must name a bucket: ${scheme}://bucket/key`
  if (key === '' || key.endsWith('/')) return `must name one object: ${scheme}://bucket/key`
  if (!key.isWellFormed() || /[\u0000-\u001f\u007f]/.test(key)) return 'must not contain control characters'
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `may have a key of at most ${MAX_KEY_BYTES} bytes`
  // A URL parser on the way would resolve these parts, and the result could be outside what is allowed.
  if (key.split('/').some((part) => /^(\.|%2e){1,2}$/i.test(part))) return 'must not have `.` or `..` between slashes'
  return { scheme: scheme.toLowerCase() as ObjectAddress['scheme'], bucket, key }
}

/** True if the project may read the object. Prefixes match whole path parts: `bucket/a` does not match `bucket/ab`. */
export function isAllowed(allow: Allowed, projectId: string, { bucket, key }: ObjectAddress): boolean {
  const forProject = Array.isArray(allow)
    ? allow
    : [...(allow['*' as never] ?? []), ...(allow[projectId as never] ?? [])]
  const path = `${bucket}/${key}`
  return (forProject as readonly string[]).some((prefix) => path.startsWith(`${prefix.replace(/\/$/, '')}/`))
}
