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
    doc: `The buckets that callers may name files in by \`${scheme}://\`; what is not listed is refused. See [Files by s3:// and gs://](#files-by-s3-and-gs).`,
  })

const variable = (path: string, doc: string) =>
  text(path, { must: 'the name of an environment variable', pattern: /^[A-Za-z_][A-Za-z0-9_]*$/, doc })

const endpoint = (path: string, doc: string) =>
  text(path, { must: 'an https or http address without a path', pattern: /^https?:\/\/[^/?#@\s]+$/, doc })

export const FILE_SETTINGS: readonly Setting[] = [
  list('files.types', {
    must: 'a list of media types like text/csv or image/*',
    item: (value) => /^[\w.+-]+\/([\w.+-]+|\*)$/.test(value),
    doc: 'What a file by URL may be, by the Content-Type that it comes with. Empty: anything.',
  }),
  allowed('s3'),
  text('files.s3.region', { must: 'a region', pattern: /^[a-z0-9-]+$/, fallback: 'us-east-1', doc: 'Their region.' }),
  endpoint('files.s3.endpoint', 'Where they are, when not at Amazon: any store that speaks S3. It may be private.'),
  variable('files.s3.accessKeyIdEnv', 'The variable with the key’s id. Without it, what the AWS SDK finds.'),
  variable('files.s3.secretAccessKeyEnv', 'The variable with the key itself.'),
  toggle('files.s3.pathStyle', {
    doc: 'Whether the bucket’s name stands in the path, not in the host; default: where there is an `endpoint`.',
  }),
  allowed('gs'),
  filePath('files.gs.credentialsFile', { must: 'the path of a JSON file', doc: 'A service account’s key file.' }),
  variable('files.gs.accessKeyIdEnv', 'Instead of a file: the variable with an HMAC key’s id.'),
  variable('files.gs.secretAccessKeyEnv', 'The variable with the HMAC key itself.'),
  endpoint('files.gs.endpoint', 'Where they are, when not at `https://storage.googleapis.com`.'),
]
