/**
 * SearXNG, a self-hosted search engine, through its JSON API (docs.searxng.org/dev/search_api.html). The operator must enable
 * the format there (`search.formats: [html, json]`); otherwise the response is 403.
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
            ? 'The search service returns no JSON. Its operator must add `json` to `search.formats` in its settings.yml.'
            : answer.message
        return { ok: false, message }
      }
      const found = listIn(answer.json, 'results').map(toRaw)
      if (found.length === 0 && Array.isArray(answer.json)) {
        return { ok: false, message: 'The search service did not respond like SearXNG.' }
      }
      return { ok: true, results: cleanResults(found, terms.maxResults) }
    },
  }
}

/** Most engines have no `publishedDate`, and some name it `pubdate`. */
function toRaw({ title, url, content, publishedDate, pubdate }: Readonly<Record<string, unknown>>): RawResult {
  return { title, url, snippet: content, date: publishedDate ?? pubdate }
}
