/**
 * The port to web search: a query returns a short list of results. Result texts come from untrusted pages. They are stripped of
 * markup and truncated, but not otherwise checked.
 */
import type { OutboundConnection } from '../egress/port.ts'

export interface SearchResult {
  readonly title: string
  readonly url: string
  /** Excerpt of the page, chosen by the service. May be empty. */
  readonly snippet: string
  /** `2026-11-03`, or the service's own wording, such as `3 days ago`. */
  readonly date?: string
}

export interface SearchTerms {
  readonly maxResults: number
  readonly signal: AbortSignal
  /** Awaited before the service is dialed. */
  readonly onConnect: (connection: OutboundConnection) => Promise<void>
}

/** `message` is for the model. It has neither the key nor the service's address or text. */
export type SearchOutcome =
  | { readonly ok: true; readonly results: readonly SearchResult[] }
  | { readonly ok: false; readonly message: string }

export interface Search {
  /** For the operator: `SearXNG at http://127.0.0.1:8888`. */
  readonly description: string
  /** Rejects only with the signal's reason. */
  search(query: string, terms: SearchTerms): Promise<SearchOutcome>
}
