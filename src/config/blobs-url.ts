/** Parses `blobsUrl`: `s3://bucket/prefix?endpoint=…&region=…&pathStyle=…` or `file:///directory`. */

import { join } from 'node:path'
import type { BlobsLocation } from '../blobs/port.ts'
import { withoutEnd } from '../domain/trim.ts'
import type { Values } from './sources.ts'

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/
const QUERY = ['endpoint', 'region', 'pathStyle']

/** By `blobsUrl`, else in the data directory. Throws as `parseBlobsUrl` does. */
export function blobsLocation(values: Values): BlobsLocation {
  const url = values.get('blobsUrl') as string | undefined
  if (url !== undefined) return parseBlobsUrl(url)
  return { kind: 'disk', directory: join(values.get('dataDir') as string, 'blobs') }
}

/** Throws an Error whose message follows the setting's name. */
function parseBlobsUrl(text: string): BlobsLocation {
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || url.hash !== '' || url.port !== '') {
    throw new Error(
      'must not hold credentials, a port or a fragment; the AWS_ variables or the machine’s role give the credentials',
    )
  }
  if (url.protocol === 'file:') {
    if (url.host !== '' || url.pathname === '/' || url.search !== '') throw new Error('must be file:///directory')
    return { kind: 'disk', directory: decodeURIComponent(url.pathname) }
  }
  const prefix = withoutEnd(url.pathname, '/').replace(/^\/+/, '')
  if (!BUCKET.test(url.hostname)) throw new Error('must name a bucket: s3://bucket/prefix')
  if (prefix !== '' && !PREFIX.test(prefix)) {
    throw new Error('may have letters, digits, dots, hyphens, underscores and single slashes behind the bucket')
  }
  const unknown = [...url.searchParams.keys()].find((key) => !QUERY.includes(key))
  if (unknown !== undefined) throw new Error(`has no option ${JSON.stringify(unknown)}; there are ${QUERY.join(', ')}`)
  const given = url.searchParams.get('endpoint') ?? undefined
  const endpoint = given && withoutEnd(given, '/')
  if (endpoint !== undefined && !/^https?:\/\/[^/?#@]+$/.test(endpoint)) {
    throw new Error('must have an https or http address without a path as its endpoint')
  }
  return {
    kind: 's3',
    bucket: url.hostname,
    prefix,
    endpoint,
    region: url.searchParams.get('region') ?? undefined,
    pathStyle: (url.searchParams.get('pathStyle') ?? String(endpoint !== undefined)) === 'true',
  }
}

/** Description for the operator. */
export function describeBlobs(location: BlobsLocation): string {
  if (location.kind === 'disk') return `in the directory ${location.directory}`
  const { bucket, prefix, endpoint = 'Amazon S3', region } = location
  const path = [bucket, prefix].filter((part) => part !== '').join('/')
  return `in the bucket s3://${path} at ${endpoint}${region === undefined ? '' : ` (${region})`}`
}
