/**
 * The port to web search: a query in, a short list out. What stands in a result was written by strangers; it is cleaned
 * of markup and cut, and no more can be said for it.
 */
import type { OutboundConnection } from '../egress/port.ts'

export interface SearchResult {
  readonly title: string
  readonly url: string
  /** What the page says about it, as the service chose; may be empty. */
  readonly snippet: string
  /** `2026-11-03`, or as the service words it: `3 days ago`. */
  readonly date?: string
}

export interface SearchTerms {
  readonly maxResults: number
  readonly signal: AbortSignal
  /** Awaited before the service is dialled. */
  readonly onConnect: (connection: OutboundConnection) => Promise<void>
}

/** `message`: for the model, without the key, the address or what the service wrote. */
export type SearchOutcome =
  | { readonly ok: true; readonly results: readonly SearchResult[] }
  | { readonly ok: false; readonly message: string }

export interface Search {
  /** For the operator: `SearXNG at http://127.0.0.1:8888`. */
  readonly description: string
  /** Never rejects but with the signal's reason. */
  search(query: string, terms: SearchTerms): Promise<SearchOutcome>
}
