/** Cleans results of a search service: removes markup, truncates texts, and drops results without a web address. */
import type { SearchResult } from './port.ts'

const MAX_TITLE = 200
const MAX_SNIPPET = 1_000
const MAX_URL = 2_000
const MAX_DATE = 40

/** Fields as the service returned them, of any type. */
export interface RawResult {
  readonly title: unknown
  readonly url: unknown
  readonly snippet: unknown
  readonly date?: unknown
}

/** Returns the results in the given order, each address once. */
export function cleanResults(raw: readonly RawResult[], maxResults: number): SearchResult[] {
  const seen = new Set<string>()
  const results: SearchResult[] = []
  for (const { title, url, snippet, date } of raw) {
    if (results.length === maxResults) break
    const address = cleanUrl(url)
    if (address === undefined || seen.has(address)) continue
    seen.add(address)
    const when = cleanDate(date)
    results.push({
      title: plain(title, MAX_TITLE) || new URL(address).host,
      url: address,
      snippet: plain(snippet, MAX_SNIPPET),
      ...(when && { date: when }),
    })
  }
  return results
}

/** The list at `path` of a response; empty if there is none. */
export function listIn(json: unknown, ...path: readonly string[]): readonly Readonly<Record<string, unknown>>[] {
  let found = json
  for (const key of path) found = isObject(found) ? found[key] : undefined
  return Array.isArray(found) ? found.filter(isObject) : []
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function cleanUrl(url: unknown): string | undefined {
  if (typeof url !== 'string' || url.length > MAX_URL || !URL.canParse(url)) return undefined
  const { protocol, href } = new URL(url)
  return protocol === 'https:' || protocol === 'http:' ? href : undefined
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** Plain text in one line. Services send `<strong>` around matches, and entities. */
function plain(text: unknown, maxLength: number): string {
  if (typeof text !== 'string') return ''
  const words = text
    .slice(0, 20 * maxLength)
    .replace(/<\/?[a-z][^<>]{0,200}>/gi, '')
    .replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi, (all, decimal, hex, name) => {
      if (name) return NAMED[name.toLowerCase()]!
      const point = decimal ? Number(decimal) : Number.parseInt(hex, 16)
      return point > 31 && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff)
        ? String.fromCodePoint(point)
        : all
    })
    .replace(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
  const characters = [...words]
  return characters.length > maxLength ? `${characters.slice(0, maxLength).join('').trimEnd()}…` : words
}

/** The day if it can be parsed (ISO 8601 or the HTTP format), otherwise the service's wording. */
function cleanDate(date: unknown): string | undefined {
  const words = plain(date, MAX_DATE)
  const day = /^\d{4}-\d\d-\d\d(?!\d)/.exec(words)?.[0]
  if (day !== undefined) return day
  const asHttp = /^[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} .*GMT$/.test(words) ? Date.parse(words) : Number.NaN
  if (!Number.isNaN(asHttp)) return new Date(asHttp).toISOString().slice(0, 10)
  return words || undefined
}
