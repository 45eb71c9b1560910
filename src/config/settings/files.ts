/** Buckets that callers may name files in. */
import { parse as parseYaml } from 'yaml'
import * as z from 'zod'
import { filePath, list, type Setting, section, text, toggle } from '../setting.ts'

/** `bucket`, `bucket/prefix`. */
const place = z.string().regex(/^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](\/\S*)?$/)

const allowed = (scheme: string) =>
  section(`files.${scheme}.allow`, {
    must: 'a list of buckets, each with or without a /prefix, or a map from project ids (or *) to such lists',
    schema: z.union([z.array(place), z.record(z.string().regex(/^(\*|prj_\w+)$/), z.array(place))]),
    parse: (value) => parseYaml(value, { logLevel: 'error' }),
    fallback: [],
    doc: `Buckets from which callers may name files by \`${scheme}://\`; others are refused. See [Files by s3:// and gs://](#files-by-s3-and-gs).`,
  })

const variable = (path: string, doc: string) =>
  text(path, { must: 'the name of an environment variable', pattern: /^[A-Za-z_][A-Za-z0-9_]*$/, doc })

const endpoint = (path: string, doc: string) =>
  text(path, { must: 'an https or http address without a path', pattern: /^https?:\/\/[^/?#@\s]+$/, doc })

export const FILE_SETTINGS: readonly Setting[] = [
  list('files.types', {
    must: 'a list of media types like text/csv or image/*',
    item: (value) => /^[\w.+-]+\/([\w.+-]+|\*)$/.test(value),
    doc: 'Allowed `Content-Type` values of files by URL. Empty: all.',
  }),
  allowed('s3'),
  text('files.s3.region', {
    must: 'a region',
    pattern: /^[a-z0-9-]+$/,
    fallback: 'us-east-1',
    doc: 'Region of the buckets.',
  }),
  endpoint('files.s3.endpoint', 'Address of a store with the S3 API, if it is not Amazon’s. It may be private.'),
  variable(
    'files.s3.accessKeyIdEnv',
    'Environment variable with the id of the access key. Default: the credentials that the AWS SDK finds.',
  ),
  variable('files.s3.secretAccessKeyEnv', 'Environment variable with the access key.'),
  toggle('files.s3.pathStyle', {
    doc: 'Whether the bucket’s name is in the path of an address instead of its host. Default: on if `endpoint` is set.',
  }),
  allowed('gs'),
  filePath('files.gs.credentialsFile', { must: 'the path of a JSON file', doc: 'Key file of a service account.' }),
  variable('files.gs.accessKeyIdEnv', 'Environment variable with the id of an HMAC key, instead of a key file.'),
  variable('files.gs.secretAccessKeyEnv', 'Environment variable with the HMAC key.'),
  endpoint('files.gs.endpoint', 'Address of the store, if it is not `https://storage.googleapis.com`.'),
]
