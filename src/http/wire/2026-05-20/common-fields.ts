/** Field schemas that several resources of revision 2026-05-20 share. */
import { z } from 'zod'
import type { Limits } from '../../../domain/limits.ts'

/** Maximum length of a name or an id, in characters. */
export const MAX_NAME_CHARS = 128
export const MAX_URL_CHARS = 4096

export function text(maxChars: number) {
  return z.string().max(maxChars)
}

export const time = () => z.iso.datetime().meta({ examples: ['2026-05-20T09:30:00.000Z'] })

export const nextPageToken = z
  .string()
  .optional()
  .meta({ description: 'Send it as `pageToken` to read the next page. Absent on the last page.' })

export const warning = z
  .object({
    code: z.string().meta({ examples: ['unknown_tool'] }),
    param: z.string().optional().meta({ description: 'The request field that the warning is about.' }),
    message: z.string(),
  })
  .meta({
    title: 'Warning',
    description:
      'Something in the request that was ignored: `unknown_field`, `unknown_parameter`, `unknown_tool`, `tool_unavailable`, `unknown_skill`, `mcp_unavailable` …',
  })

export const labelAnswers = z.record(z.string(), z.string())

export function labelRequests(limits: Limits) {
  const key = z
    .string()
    .min(1, { error: 'has a label with an empty name' })
    .max(limits.labelKeyChars, { error: `has a label whose name is longer than ${limits.labelKeyChars} characters` })
    .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'has a label with a control character in its name' })
    .refine((name) => name.isWellFormed(), { error: 'has a label whose name is not Unicode (a lone surrogate)' })
  const value = z
    .string()
    .max(limits.labelValueChars)
    .regex(/^[^\u0000]*$/, { error: 'must not contain a NUL character' })
    .refine((text) => text.isWellFormed(), { error: 'is not Unicode (a lone surrogate)' })
  return z.record(key, value.nullable()).refine((entries) => Object.keys(entries).length <= limits.labels, {
    error: `may have at most ${limits.labels} entries`,
  })
}

type WithoutNulls<T> = { [K in keyof T]: Exclude<T[K], null> }

/** The fields of `value` that are not `null`, on its first level only. */
export function withoutNulls<T extends object>(value: T): WithoutNulls<T> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== null)) as WithoutNulls<T>
}
