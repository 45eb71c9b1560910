/** Brave Search through its web search API (api-dashboard.search.brave.com/api-reference/web/search/get). */
import type { Egress } from '../egress/port.ts'
import type { Search } from './port.ts'
import { ask } from './request.ts'
import { cleanResults, listIn } from './results.ts'

/** Limits of the API. */
const MAX_COUNT = 20
const MAX_QUERY = 400
const MAX_WORDS = 50

export function createBrave(egress: Egress, baseUrl: string, apiKey: string): Search {
  return {
    description: `Brave Search at ${baseUrl}`,
    async search(query, terms) {
      const url = new URL(`${baseUrl}/res/v1/web/search`)
      url.search = new URLSearchParams({
        q: query.split(/\s+/).slice(0, MAX_WORDS).join(' ').slice(0, MAX_QUERY),
        count: String(Math.min(terms.maxResults, MAX_COUNT)),
        result_filter: 'web',
        text_decorations: 'false',
      }).toString()
      const answer = await ask(egress, { url, method: 'GET', headers: { 'x-subscription-token': apiKey } }, terms)
      if (!answer.ok) return { ok: false, message: answer.message }
      const found = listIn(answer.json, 'web', 'results').map(({ title, url, description, page_age, age }) => {
        return { title, url, snippet: description, date: page_age ?? age }
      })
      return { ok: true, results: cleanResults(found, terms.maxResults) }
    },
  }
}
