/**
 * SearXNG, a search engine of the operator's own, by its JSON API (docs.searxng.org/dev/search_api.html). The format has to
 * be switched on there (`search.formats: [html, json]`); where it is not, the answer is 403.
 */
import type { Egress } from '../egress/port.ts'
import type { Search } from './port.ts'
import { ask } from './request.ts'
import { cleanResults, listIn, type RawResult } from './results.ts'

export function createSearxng(egress: Egress, baseUrl: string): Search {
  return {
    description: `SearXNG at ${baseUrl}`,
    async search(query, terms) {
      const url = new URL(`${baseUrl}/search`)
      url.search = new URLSearchParams({ q: query, format: 'json' }).toString()
      const answer = await ask(egress, { url, method: 'GET', headers: {} }, terms)
      if (!answer.ok) {
        const message =
          answer.status === 403
            ? 'The search service gives no JSON: its operator must add it to `search.formats` in its settings.yml.'
            : answer.message
        return { ok: false, message }
      }
      const found = listIn(answer.json, 'results').map(toRaw)
      if (found.length === 0 && Array.isArray(answer.json)) {
        return { ok: false, message: 'The search service did not answer as SearXNG does.' }
      }
      return { ok: true, results: cleanResults(found, terms.maxResults) }
    },
  }
}

/** `publishedDate` is null for most, and named `pubdate` by some engines. */
function toRaw({ title, url, content, publishedDate, pubdate }: Readonly<Record<string, unknown>>): RawResult {
  return { title, url, snippet: content, date: publishedDate ?? pubdate }
}
