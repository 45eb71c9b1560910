/** Checks of settings for several nodes on one database. */
import type { Config } from '../config.ts'
import type { Values } from './sources.ts'

/** Adds a problem for each setting that nodes on one database need and that is missing. */
export function checkNodes(values: Values, problems: string[]): void {
  const role = values.get('role') as Config['role'] | undefined
  if (values.has('databaseUrl') && !values.has('secret')) {
    problems.push(
      'databaseUrl is set, and secret is missing: every node on that database needs the same one (ERRAND_SECRET). ' +
        '`openssl rand -hex 32` makes one.',
    )
  }
  if (values.has('databaseListenUrl') && !values.has('databaseUrl')) {
    problems.push('databaseListenUrl is set, and databaseUrl is missing: both are addresses of the same database.')
  }
  if (role !== undefined && role !== 'all' && !values.has('databaseUrl')) {
    problems.push(`role is "${role}", and databaseUrl is missing: an api and its workers share one Postgres database.`)
  }
}

/** Settings that work on one node and fail on several, a sentence each. */
export function warnings({ databaseUrl, blobs, dataDir }: Config): string[] {
  if (databaseUrl === undefined || blobs.kind !== 'disk' || !blobs.directory.startsWith(`${dataDir}/`)) return []
  return [
    'databaseUrl is set, and files are kept in this node’s data directory, which other nodes cannot read. For several ' +
      'nodes set blobsUrl to s3://…, or to a file:///… that all of them share.',
  ]
}
