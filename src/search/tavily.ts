/** Tavily through its search endpoint (docs.tavily.com/documentation/api-reference/endpoint/search). */
import type { Egress } from '../egress/port.ts'
import type { Search } from './port.ts'
import { ask } from './request.ts'
import { cleanResults, listIn } from './results.ts'

/** Limit of the API. */
const MAX_RESULTS = 20

export function createTavily(egress: Egress, baseUrl: string, apiKey: string): Search {
  return {
    description: `Tavily at ${baseUrl}`,
    async search(query, terms) {
      const body = { query, max_results: Math.min(terms.maxResults, MAX_RESULTS), search_depth: 'basic' }
      const headers = { authorization: `Bearer ${apiKey}` }
      const answer = await ask(egress, { url: new URL(`${baseUrl}/search`), method: 'POST', headers, body }, terms)
      if (!answer.ok) return { ok: false, message: answer.message }
      const found = listIn(answer.json, 'results').map(({ title, url, content, published_date }) => {
        return { title, url, snippet: content, date: published_date }
      })
      return { ok: true, results: cleanResults(found, terms.maxResults) }
    },
  }
}
