/** Query parameters, path parameters and request headers that several routes share. */
import { z } from 'zod'
import type { Labels } from '../../domain/agent.ts'
import { wrongField } from './fields.ts'

const DEFAULT_PAGE_SIZE = 50
const MAX_PAGE_SIZE = 100
/** Prefix of label filters, such as `label.team`. */
export const LABEL_PREFIX = 'label.'
/** Name under which the API reference shows label filters. */
export const LABEL_FILTER = 'label.<key>'

/** A value to search for. No id and no label has control characters, and some databases reject NUL. */
export const filterText = z
  .string()
  .max(512)
  .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'must not contain control characters' })

export const page = {
  pageSize: z
    .preprocess(
      wholeNumber,
      z
        .int({ error: `must be a whole number from 1 to ${MAX_PAGE_SIZE}` })
        .min(1, { error: `must be from 1 to ${MAX_PAGE_SIZE}` })
        .max(MAX_PAGE_SIZE, { error: `must be from 1 to ${MAX_PAGE_SIZE}` }),
    )
    .optional()
    .meta({ description: `Maximum number of items per page. Default ${DEFAULT_PAGE_SIZE}.` }),
  pageToken: z
    .string()
    .max(1000)
    .optional()
    .meta({ description: 'The `nextPageToken` of the previous page. Keep the filters and the order.' }),
}

export const list = {
  ...page,
  order: z
    .enum(['asc', 'desc'])
    .optional()
    .meta({ description: 'Order by creation time. Default `desc`, newest first.' }),
  [LABEL_FILTER]: filterText.optional().meta({
    description:
      'Only items whose label `<key>` has this value, such as `label.team=sales`. Can be given for several keys.',
  }),
}

export const view = z.enum(['full', 'short']).optional().meta({
  description:
    '`short`: `usage` has two fields, `args` is JSON text. `Prefer: return=minimal` asks for the same. Default `full`.',
})

/** The page size that was asked for, or the default. */
export function pageSizeOf(query: { readonly pageSize?: number }): number {
  return query.pageSize ?? DEFAULT_PAGE_SIZE
}

/** The `label.<key>` filters among a query's parameters. Throws ErrandError `invalid_request`. */
export function labelFilters(query: Readonly<Record<string, unknown>>): Labels {
  const labels: Record<string, string> = {}
  for (const [name, value] of Object.entries(query)) {
    if (!name.startsWith(LABEL_PREFIX)) continue
    const key = name.slice(LABEL_PREFIX.length)
    if (key === '') throw wrongField(name, 'names no label; write `label.<key>`')
    if (!filterText.safeParse(value).success || !filterText.safeParse(key).success) {
      throw wrongField(name, 'must be one value without control characters')
    }
    labels[key] = value as string
  }
  return labels
}

/** Converts digits to a number. Other values stay as they are: the schema refuses them. */
function wholeNumber(value: unknown): unknown {
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
}

export const headers = {
  revision: {
    'Api-Revision': z
      .string()
      .optional()
      .meta({
        description: 'The API revision to use. Absent: the latest. Always send it in production.',
        examples: ['2026-05-20'],
      }),
  },
  prefer: {
    Prefer: z.string().optional().meta({
      description:
        'RFC 7240, several by comma: `wait=N` (seconds to wait at most, then the answer as `background` gives it), `respond-async`, `return=minimal` (short form), `handling=strict` (a skill or MCP server that can’t be used is 400 instead of a warning). What was followed comes back in `Preference-Applied`.',
    }),
  },
  minimal: {
    Prefer: z.string().optional().meta({ description: '`return=minimal`: the short form, as `view=short`.' }),
  },
  idempotencyKey: {
    'Idempotency-Key': z.string().optional().meta({
      description:
        '1 to 255 visible ASCII characters. Within 24 hours, a request with the same key and body joins the interaction that the first request started, running or ended; the response then has `Idempotent-Replayed: true`. If that run failed with a retryable error, the request starts one new run, and `retryOf` names the failed one. The same key with another body is 422; only `stream` and `background` may differ.',
    }),
  },
  ifMatch: {
    'If-Match': z.string().optional().meta({
      description: 'The `etag` that the change is based on. If the resource has changed since, the call is 412.',
    }),
  },
  lastEventId: {
    'Last-Event-ID': z.string().optional().meta({
      description:
        'The number of the last event that you received. The stream resumes after it. Overrides `lastEventId`.',
    }),
  },
}

export const idParam = z.object({
  id: z.string().meta({ description: 'The id that POST returned, or that you chose.' }),
})
