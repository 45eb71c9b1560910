/**
 * `files` of a request: schema, and decoding to checked names with bytes or a URL. The engine decides whether a URL may be
 * fetched.
 */
import { z } from 'zod'
import { ErrandError } from '../../../domain/errors.ts'
import type { InlineFile, RunRequest } from '../../../domain/interaction.ts'
import { wrongField } from '../../request/fields.ts'
import { MAX_URL_CHARS, text } from './common-fields.ts'

const MAX_NAME_BYTES = 1024
const MAX_SEGMENT_BYTES = 255

export function inputFileRequest() {
  return z
    .object({
      name: text(1024)
        .min(1)
        .meta({
          description: 'Relative path in the working directory, with `/` between folders.',
          examples: ['data/sales.csv'],
        }),
      content: z.string().nullish().meta({ description: 'The content, in the encoding that `encoding` names.' }),
      encoding: z.enum(['utf-8', 'base64']).nullish().meta({ description: 'Encoding of `content`. Default `utf-8`.' }),
      data: z.string().nullish().meta({ description: 'The content in base64, instead of `content`.' }),
      url: text(MAX_URL_CHARS)
        .nullish()
        .meta({
          description:
            'An https URL, or `s3://bucket/key` or `gs://bucket/object` in a bucket that the operator allows. It is fetched when the run starts; redirects are followed, private addresses are refused. If it can’t be fetched, the run fails with `file_unavailable`.',
          examples: ['https://files.example.com/sales.csv'],
        }),
      mimeType: z
        .string()
        .max(255)
        .regex(/^[\w.+-]+\/[\w.+-]+(\s*;.*)?$/, { error: 'must be a media type such as text/csv' })
        .nullish()
        .meta({ description: 'Media type.', examples: ['text/csv'] }),
    })
    .meta({
      title: 'InputFile',
      description: 'A file for the sandbox. Give exactly one of `content`, `data` and `url`.',
      examples: [{ name: 'sales.csv', content: 'region,total\nnorth,10\n' }],
    })
}

type SentFile = z.output<ReturnType<typeof inputFileRequest>>

/** Throws ErrandError `invalid_request` naming `files[i].…`, or `payload_too_large` above `maxBytes` in total. */
export function decodeFiles(files: readonly SentFile[], maxBytes: number): RunRequest['files'] {
  const names = new Set<string>()
  const folders = new Set<string>()
  let total = 0
  return files.map((file, i) => {
    checkName(file.name, `files[${i}].name`, names, folders)
    const { name, url } = file
    const mimeType = file.mimeType ? { mimeType: file.mimeType } : {}
    checkSource(file, `files[${i}]`)
    if (typeof url === 'string') return { name, url, ...mimeType }
    const bytes = decodeContent(file, `files[${i}]`)
    total += bytes.byteLength
    if (total > maxBytes) {
      throw new ErrandError('payload_too_large', `The inline files have more than ${maxBytes} bytes in total.`, {
        param: 'files',
      })
    }
    return { name, bytes, ...mimeType } satisfies InlineFile
  })
}

function checkSource(file: SentFile, param: string): void {
  const given = (['content', 'data', 'url'] as const).filter((key) => file[key] !== undefined && file[key] !== null)
  if (given.length !== 1) throw wrongField(param, 'must have exactly one of `content`, `data` and `url`')
}

function decodeContent(file: SentFile, param: string): Uint8Array {
  if (typeof file.data === 'string') return decodeBase64(file.data, `${param}.data`)
  if (file.encoding === 'base64') return decodeBase64(file.content ?? '', `${param}.content`)
  return new TextEncoder().encode(file.content ?? '')
}

/** Checks before it decodes: Node's decoder skips invalid characters, which would shorten a damaged file. */
function decodeBase64(text: string, param: string): Uint8Array {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    throw wrongField(param, 'is not base64 (RFC 4648, section 4, with padding and without line breaks)')
  }
  return Buffer.from(text, 'base64')
}

function checkName(name: string, param: string, names: Set<string>, folders: Set<string>): void {
  const fault = faultOf(name)
  if (fault) throw wrongField(param, fault)
  if (names.has(name)) throw wrongField(param, 'is also the name of another file')
  if (folders.has(name)) throw wrongField(param, 'is also the name of a folder that another file is in')
  names.add(name)
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) {
    const folder = name.slice(0, at)
    if (names.has(folder)) throw wrongField(param, `is inside ${JSON.stringify(folder)}, which is a file`)
    folders.add(folder)
  }
}

function faultOf(name: string): string | undefined {
  if (/[\u0000-\u001f\u007f]/.test(name)) return 'must not contain control characters'
  if (!name.isWellFormed()) return 'is not valid Unicode'
  if (name.includes('\\')) return 'must not contain a backslash; use `/` between folders'
  if (name.startsWith('/')) return 'must be a relative path'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `may have at most ${MAX_NAME_BYTES} bytes`
  for (const segment of name.split('/')) {
    if (segment === '..') return 'must not contain `..`'
    if (segment === '' || segment === '.') return 'must not contain an empty part or `.` between slashes'
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) {
      return `may have at most ${MAX_SEGMENT_BYTES} bytes between slashes`
    }
  }
  return undefined
}
